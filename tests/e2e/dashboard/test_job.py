"""A job's page: charts, log, checkpoints, and what can be asked of it."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.dashboard.windows import DESKTOP
from tests.support.browser import visit
from tests.support.live import Live
from tests.support.scripted import GIB, Agent
from torchyard import wire
from torchyard.failures import recognition
from torchyard.wire import Action, RankExit, ResultKind, Root

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("lived_in")]
Submit = Callable[..., dict[str, Any]]

#: How many pixels of a canvas have a colour: lines have one, axes and grid are nearly grey.
COLOURED = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let coloured = 0;
    for (let at = 0; at < data.length; at += 4) {
        const [red, green, blue, alpha] = data.subarray(at, at + 4);
        if (alpha > 128 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) coloured += 1;
    }
    return coloured;
}"""


def chart(page: Page, title: str) -> Locator:
    return page.locator("figure.chart").filter(has=page.get_by_text(title, exact=True))


def test_each_tab_has_an_address_and_the_keyboard_reaches_all(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="tabbed")
    node.start()
    visit(page, f"/jobs/{job['number']}")
    expect(page.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")
    page.get_by_role("tab", name="Overview").focus()
    for tab in ("Charts", "Log", "Checkpoints", "Machine", "Spec"):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        page.wait_for_url(f"**/jobs/{job['number']}/{tab.lower()}")
        expect(page.get_by_role("tabpanel").get_by_role("region").first).to_be_visible()
    page.keyboard.press("Home")
    page.wait_for_url(f"**/jobs/{job['number']}")
    page.go_back()
    expect(page.get_by_role("tab", name="Spec")).to_have_attribute("aria-selected", "true")
    page.reload()
    expect(page.get_by_role("region", name="Spec")).to_be_visible()
    visit(page, f"/jobs/{job['number']}/nowhere")
    page.get_by_role("link", name="To its overview").click()
    expect(page.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")


def test_chosen_tab_is_in_sight_on_a_phone(page: Page, node: Agent, submit: Submit) -> None:
    job = submit()
    node.start()
    page.set_viewport_size({"width": 390, "height": 844})
    for path, tab in (("/spec", "Spec"), ("", "Overview")):
        visit(page, f"/jobs/{job['number']}{path}")
        chosen = page.get_by_role("tab", name=tab)
        expect(chosen).to_have_attribute("aria-selected", "true")
        expect(chosen).to_be_in_viewport(ratio=1)
    assert page.locator(".tab-list").evaluate("strip => strip.scrollWidth > strip.clientWidth")


def test_charts_draw_and_grow(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="curves")
    attempt = node.start()
    visit(page, f"/jobs/{job['number']}/charts")
    expect(page.get_by_text("No metrics yet.")).to_be_visible()
    attempt.report(range(100), total_steps=400, train__loss=lambda step: 5 / (1 + step), val__loss=1.5, lr=0.1)
    loss = chart(page, "loss")
    expect(loss.locator("li")).to_have_text(["train/loss 0.05000", "val/loss 1.500"])
    expect(chart(page, "lr")).to_be_visible()
    canvas = loss.locator("canvas")
    page.wait_for_function(f"canvas => ({COLOURED})(canvas) > 200", arg=canvas.element_handle())
    before = canvas.evaluate(COLOURED)
    attempt.report(range(100, 200), total_steps=400, train__loss=4.0, val__loss=1.5, lr=0.1)
    expect(loss.locator("li").first).to_have_text("train/loss 4")
    page.wait_for_function(
        f"([canvas, before]) => ({COLOURED})(canvas) !== before", arg=[canvas.element_handle(), before]
    )


def test_a_run_has_one_duration_and_one_end(page: Page, submit: Submit, node: Agent, live_service: Live) -> None:
    """Its node says when it ended; the service hears of it at another moment."""
    job = submit(name="timed")
    attempt = node.start()
    attempt.end(ended_us=attempt.started_us + 100_000_000)
    visit(page, f"/jobs/{job['number']}")
    expect(page.locator(".facts div").filter(has_text="Ran").locator("dd")).to_have_text("1m 40s")
    states = page.get_by_role("list", name="States").get_by_role("listitem")
    expect(states.filter(has_text="running")).to_contain_text("1m 40s")
    ended_at = live_service.client.get(f"/api/v1/jobs/{job['id']}").json()["ended_at"]
    expect(states.last.locator("time")).to_have_attribute("datetime", ended_at)


def test_points_that_are_missing_are_told(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="full")
    attempt = node.start()
    attempt.report(range(10), loss=1.0)
    visit(page, f"/jobs/{job['number']}/charts")
    expect(chart(page, "loss")).to_be_visible()
    expect(page.get_by_text("metrics lost")).not_to_be_visible()
    attempt.report(range(10, 12), lost=66, loss=1.0)
    attempt.end()
    expect(page.get_by_text("66 records of metrics lost")).to_be_visible()


def test_charts_switch_scale_axis_and_smoothing(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="noisy")
    attempt = node.start()
    attempt.report(range(51), loss=lambda step: "nan" if step == 25 else 1 + step % 3)
    visit(page, f"/jobs/{job['number']}/charts")
    figure = chart(page, "loss")
    slider = page.get_by_role("slider", name="Smoothing")
    slider.focus()
    page.keyboard.press("PageUp")
    expect(slider).to_have_attribute("aria-valuenow", "0.1")
    for name in ("Log", "Wall", "Time"):
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.get_by_role("button", name=name, exact=True)).to_have_attribute("aria-pressed", "true")
        page.wait_for_function(f"canvas => ({COLOURED})(canvas) > 100", arg=figure.locator("canvas").element_handle())
    page.get_by_role("button", name="Steps", exact=True).click()
    figure.locator(".u-over").hover()
    expect(figure.locator(".chart-at")).to_have_text("step 25")
    expect(figure.locator("li")).to_have_text("loss nan")


def test_keys_zoom_move_and_read_a_chart(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="keys")
    node.start().report(range(51), loss=lambda step: step % 3, val__loss=2.0)
    visit(page, f"/jobs/{job['number']}/charts")
    figure = chart(page, "loss")
    canvas, said = figure.get_by_role("group", name="Chart of loss, val/loss"), figure.get_by_role("status")
    canvas.focus()
    page.keyboard.press("Shift+ArrowRight")
    expect(said).to_have_text("step 0: loss 0, val/loss 2")
    page.keyboard.press("Shift+ArrowRight")
    expect(said).to_have_text("step 1: loss 1, val/loss 2")
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile("zoom="))
    zoomed = page.url
    page.keyboard.press("ArrowRight")
    expect(page).not_to_have_url(zoomed)
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("zoom="))
    page.keyboard.press("Tab")
    expect(said).to_be_empty()


def test_ranks_are_lines_or_a_band(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="ranks", resources={"gpus": 4})
    attempt = node.start()
    for rank in range(4):
        attempt.report(range(10), rank=rank, loss=float(rank))
    visit(page, f"/jobs/{job['number']}/charts")
    lines = chart(page, "loss").locator("li")
    expect(lines).to_have_count(4)
    page.get_by_role("button", name="Band of ranks").click()
    expect(lines).to_have_count(1)
    expect(page).to_have_url(re.compile("ranks=band"))
    chart(page, "loss").locator(".u-over").hover()
    expect(lines).to_contain_text("1.500 (0 to 3)")
    page.get_by_role("button", name="Each rank").click()
    expect(lines).to_have_count(4)


def test_charts_are_in_sections_and_how_they_are_shown_stands_in_the_address(
    page: Page, submit: Submit, node: Agent, tmp_path: Path
) -> None:
    job = submit(name="many")
    attempt = node.start()
    values = {f"layers__{n}__norm": 1.0 + n for n in range(12)}
    attempt.report(range(20), train__loss=2.0, val__loss=1.5, lr=0.1, memory_peak__rank0=2.0 * GIB, **values)
    visit(page, f"/jobs/{job['number']}/charts")
    sections = page.locator(".chart-section h3")
    expect(sections).to_have_text(["Losses and accuracies", "layers", "Other metrics", "System"])
    expect(chart(page, "memory_peak/rank0")).to_have_count(0)
    sections.filter(has_text="System").click()
    expect(chart(page, "memory_peak/rank0").locator("li")).to_have_text("memory_peak/rank0 2.0 GiB")
    loss = chart(page, "loss")
    loss.get_by_role("button", name="val/loss").click()
    expect(loss.get_by_role("button", name="val/loss")).to_have_attribute("aria-pressed", "false")
    loss.get_by_role("button", name="More for loss").click()
    page.get_by_role("menuitem", name="Set the vertical range").click()
    page.get_by_label("From").fill("1")
    page.get_by_label("To", exact=True).fill("4")
    page.get_by_role("button", name="Set it").click()
    chart(page, "lr").get_by_role("button", name="More for lr").click()
    page.get_by_role("menuitem", name="Pin to the top").click()
    expect(sections.first).to_have_text("Pinned")
    page.wait_for_url(re.compile(r"hide=.*val%2Floss"))
    page.wait_for_url(re.compile(r"pin=.*lr"))
    page.reload()
    expect(sections.first).to_have_text("Pinned")
    expect(loss.get_by_role("button", name="val/loss")).to_have_attribute("aria-pressed", "false")
    for kind, begins in (("CSV", b"step,train/loss\n0,2\n"), ("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        loss.get_by_role("button", name="More for loss").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=f"Save as {kind}").click()
        assert download.value.suggested_filename == f"loss.{kind.lower()}"
        download.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(begins)
    loss.get_by_role("button", name="More for loss").click()
    page.get_by_role("menuitem", name="Full screen").click()
    whole = page.get_by_role("dialog", name="Chart of loss")
    expect(whole.locator("canvas")).to_be_visible()
    page.wait_for_url(re.compile("full=loss"))
    page.keyboard.press("Escape")
    expect(whole).to_have_count(0)
    page.wait_for_url(re.compile("^((?!full=).)*$"))


def test_the_log_is_followed_until_one_scrolls_up(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="talker")
    attempt = node.start()
    attempt.write("".join(f"line {n}\n" for n in range(300)) + "\x1b[31mred\x1b[0m\n")
    attempt.write("the other rank\n", rank=1)
    visit(page, f"/jobs/{job['number']}/log")
    log = page.get_by_role("log")
    expect(log).to_contain_text("red")
    expect(page.get_by_text("following")).to_be_visible()
    attempt.write("10%\r100%\ncaught up\n")
    expect(log).to_contain_text("caught up")
    assert "10%" not in log.inner_text().replace("100%", "")
    log.hover()
    page.mouse.wheel(0, -1500)
    expect(page.get_by_text("paused")).to_be_visible()
    attempt.write("while paused\n")
    expect(log).not_to_contain_text("while paused")
    page.get_by_role("button", name="Jump to end").click()
    expect(log).to_contain_text("while paused")
    page.get_by_role("button", name="rank 1").click()
    expect(page.get_by_role("log")).to_contain_text("the other rank")
    attempt.end()
    expect(page.get_by_text("complete")).to_be_visible()


def test_a_long_log_begins_at_its_end_and_goes_back(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="long")
    attempt = node.start()
    attempt.write("".join(f"{n:07d} {'é' * 20}\n" for n in range(10_000)))
    visit(page, f"/jobs/{job['number']}/log")
    log = page.get_by_role("log")
    expect(log).to_contain_text("0009999")
    assert page.locator(".log-line").count() < 200
    log.evaluate("box => box.scrollTo(0, 0)")
    expect(log).to_contain_text("0000000 éé")
    assert "\ufffd" not in log.inner_text()


def test_a_checkpoint_can_be_downloaded_and_rerun(
    page: Page, submit: Submit, node: Agent, tmp_path: Path, live_service: Live
) -> None:
    job = submit(name="saver", checkpoint={"keep_last": 5, "keep_best": {"metric": "val/accuracy", "mode": "max"}})
    attempt = node.start()
    attempt.checkpoint(10, {"state.pt": b"ten" * 1000, "rng/rank-0.json": b"{}"}, val__accuracy=0.9)
    attempt.checkpoint(20, {"state.pt": b"twenty" * 1000}, val__accuracy=0.8)
    attempt.output({"figures/loss.txt": b"lower"})
    attempt.end()
    visit(page, f"/jobs/{job['number']}")
    with page.expect_download() as download:
        page.get_by_role("link", name="figures/loss.txt").click()
    download.value.save_as(tmp_path / "loss.txt")
    assert (tmp_path / "loss.txt").read_bytes() == b"lower"
    page.get_by_role("tab", name="Checkpoints").click()
    rows = page.locator(".checkpoints tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("step 20")
    expect(rows.nth(1)).to_contain_text("best")
    expect(rows.nth(0)).to_contain_text("newest")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("(box => box.scrollWidth <= box.clientWidth)(document.querySelector('.checkpoints-box'))")
    expect(rows.nth(0).get_by_role("button", name="Delete")).to_be_visible()
    page.set_viewport_size(DESKTOP)
    rows.nth(1).get_by_text("2 files").click()
    with page.expect_download() as download:
        rows.nth(1).get_by_role("link", name="state.pt").click()
    download.value.save_as(tmp_path / "state.pt")
    assert (tmp_path / "state.pt").read_bytes() == b"ten" * 1000
    rows.nth(0).get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete it").click()
    expect(rows).to_have_count(1)
    rows.nth(0).get_by_role("button", name="Rerun from here").click()
    page.wait_for_url(f"**/jobs/{job['number'] + 1}")
    made = live_service.client.get(f"/api/v1/jobs/{job['number'] + 1}").json()
    assert made["rerun_of"] == job["id"]
    assert made["resumed_from"] is not None


def test_cancel_is_asked_twice_and_rerun_starts_anew(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="short-lived")
    attempt = node.start()
    visit(page, f"/jobs/{job['number']}")
    page.get_by_role("button", name="Checkpoint now").click()
    expect(page.get_by_role("button", name="Checkpoint asked for")).to_be_visible()
    node.ordered(Action.CHECKPOINT)
    attempt.checkpoint(1, {"state.pt": b"one"})
    expect(page.get_by_role("button", name="Checkpoint now")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Back").click()
    expect(page.locator(".job-title")).to_contain_text("running")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel the job").click()
    order = node.ordered(Action.STOP)
    expect(page.locator(".job-title")).to_contain_text("stopping")
    attempt.end(stop=order.reason, stopped_at_step=3)
    expect(page.locator(".job-title")).to_contain_text("cancelled")
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    page.get_by_role("button", name="Rerun").click()
    page.get_by_role("button", name="Submit a new job").click()
    page.wait_for_url(f"**/jobs/{job['number'] + 1}")
    node.start()
    expect(page.locator(".job-title")).to_contain_text("running")


def test_a_change_is_sent_also_where_the_browser_takes_itself_for_offline(
    page: Page, submit: Submit, node: Agent
) -> None:
    """The service may be on the same machine, which no network is needed for."""
    submit(name="holder", resources={"gpus": 4})
    node.start()
    job = submit(name="waiter")
    visit(page, f"/jobs/{job['number']}")
    page.evaluate("dispatchEvent(new Event('offline'))")
    page.get_by_role("button", name="Hold", exact=True).click()
    expect(page.get_by_role("button", name="Release")).to_be_visible()
    page.evaluate("dispatchEvent(new Event('online'))")


def test_a_failed_job_begins_with_its_traceback(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="broken", resources={"gpus": 2})
    attempt = node.start()
    ranks = [RankExit(rank=1, exit_code=3, ended_us=attempt.started_us)]
    traceback = "Traceback (most recent call last):\n  …\nValueError: the label 11 is out of range"
    attempt.end(exit_code=1, ranks=ranks, failed_rank=1, traceback=traceback, kind=ResultKind.EXITED)
    visit(page, f"/jobs/{job['number']}")
    failure = page.get_by_role("region", name="Failure")
    expect(failure).to_contain_text("rank 1")
    expect(failure).to_contain_text("exit code 3")
    expect(failure).to_contain_text("the label 11 is out of range")
    expect(page.locator(".timeline")).to_contain_text("failed")


def test_the_exception_is_the_headline_of_a_failure_and_the_advice_follows(
    page: Page, submit: Submit, node: Agent
) -> None:
    job = submit(name="greedy", max_retries=0)
    raised = "torch.OutOfMemoryError: CUDA out of memory."
    traceback = f'Traceback (most recent call last):\n  File "train.py", line 3\n{raised}'
    node.start().end(exit_code=1, failed_rank=0, traceback=traceback, fingerprint="out-of-memory")
    visit(page, f"/jobs/{job['number']}")
    failure = page.get_by_role("region", name="Failure")
    expect(failure.locator(".failure-message")).to_have_text(raised)
    advice = recognition.advice("out-of-memory")
    assert advice is not None
    expect(failure).to_contain_text(advice[1:])


def test_an_overview_tells_how_the_training_goes_and_where_its_time_went(
    page: Page, submit: Submit, node: Agent
) -> None:
    job = submit(name="learner")
    attempt = node.start()
    attempt.report(
        range(10), train__loss=lambda step: 4 - step / 4, val__accuracy=lambda step: step / 20, data_wait=0.25
    )
    attempt.report([10], train__loss=2.5, val__accuracy=0.125, data_wait=0.25)
    attempt.end(ended_us=attempt.started_us + 100_000_000)
    visit(page, f"/jobs/{job['number']}")
    cards = page.get_by_role("region", name="Metrics").get_by_role("link")
    expect(cards.nth(0)).to_contain_text("val/accuracy0.1250highest 0.4500")
    expect(cards.nth(1)).to_contain_text("train/loss2.500lowest 1.750")
    spent = page.get_by_role("region", name="Where the time went")
    expect(spent.get_by_role("listitem").filter(has_text="waiting for data")).to_contain_text("25s")
    expect(spent.get_by_role("listitem").filter(has_text="running")).to_contain_text("1m 15s")
    cards.nth(0).click()
    expect(page.get_by_role("tab", name="Charts")).to_have_attribute("aria-selected", "true")


def test_a_waiting_job_says_why_and_can_be_held(page: Page, submit: Submit, node: Agent) -> None:
    submit(name="holder", resources={"gpus": 4})
    node.start()
    job = submit(name="waiter", resources={"gpus": 2})
    visit(page, f"/jobs/{job['number']}")
    why = page.get_by_role("region", name="Why")
    expect(why).to_contain_text("GPU")
    page.get_by_role("button", name="Hold").click()
    expect(page.locator(".job-title")).to_contain_text("held")
    page.get_by_role("button", name="Release").click()
    expect(page.locator(".job-title")).to_contain_text("queued")
    page.get_by_role("tab", name="Spec").click()
    page.get_by_role("button", name="JSON").click()
    expect(page.locator(".spec")).to_contain_text('"name": "waiter"')


def test_telemetry_is_charted(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="warm")
    attempt = node.start()
    for ago in range(40, 0, -2):
        node.sample({"gpu.0.utilization": 50.0 + ago, "memory.used": 2.0 * GIB}, attempt, ago_s=ago)
    visit(page, f"/jobs/{job['number']}/machine")
    figure = chart(page, "GPU utilisation")
    expect(figure.locator("li")).to_have_text("GPU 0 52 %")
    page.wait_for_function(f"canvas => ({COLOURED})(canvas) > 30", arg=figure.locator("canvas").element_handle())


def test_an_unknown_job_is_said_to_be_unknown(page: Page) -> None:
    visit(page, "/jobs/4711")
    expect(page.get_by_role("alert")).to_contain_text("4711")


def test_a_training_that_is_not_saved_or_not_exact_says_so(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="careless")
    attempt = node.start()
    visit(page, f"/jobs/{job['number']}")
    expect(page.locator(".job-title")).to_contain_text("running")
    expect(page.locator(".job-warning")).to_have_count(0)
    attempt.note(wire.NoteKind.CHECKPOINT_FAILED, "no space left on device", step=40)
    attempt.note(wire.NoteKind.INEXACT, "batches are taken ahead", step=41)
    expect(page.locator(".job-warning")).to_have_text(
        [
            "The newest checkpoint could not be written: no space left on device",
            "A stop of this training is not resumed exactly: batches are taken ahead",
        ]
    )
    attempt.checkpoint(60, {"state.pt": b"state"})
    expect(page.locator(".job-warning")).to_have_count(1)


def _written(path: str, data: bytes, root: Root = Root.CODE, **more: Any) -> wire.WrittenFile:
    return wire.WrittenFile(
        path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest(), mode=0o644, root=root, **more
    )


def test_files_that_the_job_wrote_are_a_tree_to_download_from(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="writer")
    attempt = node.start()
    weights, word = b"w" * 2048, b"a word"
    big = wire.WrittenFile(path="huge.pt", size=3 * GIB, sha256="", mode=0o644, root=Root.CODE, on_node=True)
    report = wire.OutputReport(
        files=[],
        written=[_written("runs/today/weights.pt", weights), _written("data/word.txt", word, Root.JOB), big],
        deleted=[wire.Place(root=Root.CODE, path="old.pt")],
        kept="/srv/kept/1",
    )
    attempt.written(report, weights, word)
    attempt.end()
    visit(page, f"/jobs/{job['number']}")
    panel = page.get_by_role("region", name="Outputs")
    expect(panel.locator(".panel-tools")).to_contain_text("3 files, 3.0 GiB")
    expect(panel.locator("h3")).to_have_text(["Working folder", "Beside the working folder (../)"])
    expect(panel.locator("summary").first).to_contain_text("runs/today/ 1 file, 2.0 KiB")
    expect(panel.locator(".file", has_text="old.pt")).to_contain_text("deleted by the job")
    expect(panel.locator(".file", has_text="huge.pt").get_by_title("/srv/kept/1")).to_contain_text(
        "too large: stays on"
    )
    with page.expect_download() as download:
        panel.get_by_role("link", name="weights.pt").click()
    assert download.value.path().read_bytes() == weights
    panel.locator("summary").first.click()
    expect(panel.get_by_role("link", name="weights.pt")).not_to_be_visible()
    panel.get_by_role("button", name="Fetch 1 file from the node").click()
    expect(panel.get_by_role("button", name="On their way")).to_be_disabled()
    expect(panel.locator(".file", has_text="huge.pt")).to_contain_text("on its way from")


def test_the_files_of_a_job_are_discarded_and_the_page_says_so(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="over")
    attempt = node.start()
    attempt.report(range(20), loss=0.25)
    attempt.write("a word\n")
    attempt.output({"result.txt": b"x" * 2048})
    visit(page, f"/jobs/{job['number']}/log")
    expect(page.get_by_role("log")).to_contain_text("a word")
    expect(page.get_by_role("button", name="Discard files")).to_have_count(0)
    attempt.end()
    page.get_by_role("button", name="Discard files").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("outputs (2.0 KiB)")
    dialog.get_by_role("button", name="Back").click()
    expect(page.get_by_role("log")).to_contain_text("a word")
    page.get_by_role("button", name="Discard files").click()
    dialog.get_by_role("button", name="Discard for good").click()
    expect(page.get_by_text("were discarded on")).to_be_visible()
    expect(page.get_by_role("log")).to_have_count(0)
    page.get_by_role("tab", name="Overview").click()
    expect(page.get_by_text("were discarded on")).to_be_visible()
    expect(page.get_by_text("result.txt")).to_have_count(0)
    expect(page.get_by_role("button", name="Discard files")).to_have_count(0)
    expect(page.locator(".events li").first).to_contain_text("outputs discarded (2.0 KiB)")
    expect(page.locator(".facts")).to_contain_text("0.2500")
    expect(page.get_by_role("button", name="Rerun")).to_be_visible()
