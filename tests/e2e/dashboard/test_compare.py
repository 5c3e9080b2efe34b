"""Runs side by side: curves that share their axis, what they came to, and what differs between them."""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.dashboard.lived_in import LivedIn
from tests.support.browser import visit
from tests.support.brushes import brush
from tests.support.live import Live
from tests.support.scripted import Agent
from tests.support.wait import until
from torchyard import wire

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("lived_in")]
Submit = Callable[..., dict[str, Any]]


def uploaded(client: httpx.Client, **files: str) -> str:
    """A snapshot of some files."""
    named = {name.replace("__", "."): text.encode() for name, text in files.items()}
    listed = [
        {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for path, data in named.items()
    ]
    made = str(client.post("/api/v1/snapshots", json={"files": listed}).raise_for_status().json()["id"])
    for file, data in zip(listed, named.values(), strict=True):
        client.put(f"/api/v1/snapshots/{made}/blobs/{file['sha256']}", content=data).raise_for_status()
    client.post(f"/api/v1/snapshots/{made}/commit").raise_for_status()
    return made


@pytest.fixture(scope="module")
def runs(lived_in: LivedIn) -> list[int]:
    """Two runs of other code and variables, with curves of their own."""
    client = lived_in.service.client
    first = uploaded(client, train__py="lr = 0.1\nprint(lr)\n", same__py="pass\n")
    second = uploaded(client, train__py="lr = 0.2\nprint(lr)\n", same__py="pass\n", new__py="new\n")
    numbers = []
    for at, code in enumerate((first, second)):
        spec = {"name": f"run-{at}", "command": ["train.py"], "code": code, "env": {"SEED": str(at)}}
        whole = {**spec, "resources": {"gpus": 1}, "time_limit": f"{at + 1}h"}
        job = client.post("/api/v1/jobs", json=whole).raise_for_status().json()
        attempt = lived_in.node.start()
        packages = {"numpy": "2.1", "torch": f"2.{12 + at}.0"}
        attempt.environment(wire.Environment(interpreter="/v/bin/python", python="3.11.9", packages=packages))
        attempt.report(range(2000), loss=lambda step, at=at: 2.0 / (1 + step / 100) + at, val__accuracy=0.5 + at / 10)
        attempt.end()
        numbers.append(int(job["number"]))
    return numbers


def test_curves_table_and_differences(page: Page, runs: list[int], tmp_path: Path) -> None:
    visit(page, f"/compare?jobs={runs[0]}")
    page.get_by_label("Numbers of jobs to add").fill(f"{runs[1]}, 4711")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("No job that you may see has the number 4711.")).to_be_visible()
    charts = page.locator("figure.runs-chart")
    expect(charts).to_have_count(2)
    expect(page.get_by_text("first look")).to_have_count(0)
    over = charts.first.locator(".u-over")

    def told() -> bool:
        """Move the pointer over the first chart; one that is made anew with later points has not heard of it."""
        over.hover(position={"x": 40, "y": 10})
        over.hover()
        return all("steps " in text for text in charts.locator(".chart-at").all_text_contents())

    until(told, what="both charts at the pointer's steps")
    show_all = page.get_by_role("button", name="Show all", exact=True)

    def zoomed() -> bool:
        """Drag over a part of the chart, made anew without it when the second run's points come."""
        if (box := over.bounding_box()) is None:
            return False
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 10)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.52, box["y"] + 10, steps=4)
        page.mouse.up()
        with suppress(AssertionError):
            expect(show_all).to_be_visible(timeout=2_000)
        return show_all.is_visible()

    until(zoomed, what="a zoomed chart")
    expect(charts.first.locator(".chart-at")).to_contain_text(re.compile(r"step [\d,]+$"))
    show_all.click()

    table = page.get_by_role("region", name="Runs and their metrics")
    cells = table.locator("tbody tr").first.locator("td.num")
    expect(cells).to_have_text([str(runs[0]), "0.09528", "0.09528", "0.5000", "0.5000"])
    table.get_by_role("button", name="loss final").click()
    table.get_by_role("button", name="loss final").click()
    expect(table.locator("tbody tr").first).to_contain_text("run-1")
    with page.expect_download() as started:
        page.get_by_role("button", name="CSV").click()
    started.value.save_as(tmp_path / "runs.csv")
    lines = (tmp_path / "runs.csv").read_text().splitlines()
    assert lines[0] == "number,name,state,user,loss final,loss best,val/accuracy final,val/accuracy best"
    assert len(lines) == 3

    differs = page.get_by_role("region", name="What differs")
    expect(differs.get_by_text("time_limit")).to_be_visible()
    expect(differs.get_by_text("env.SEED")).to_be_visible()
    differs.get_by_role("button", name="Environment").click()
    expect(differs.get_by_text("env.SEED")).to_be_visible()
    expect(differs.locator("dl").last.locator("dt")).to_have_text(["torch"])
    expect(differs.locator("dl").last.locator("code")).to_have_text(["2.12.0", "2.13.0"])
    differs.get_by_role("button", name="Code").click()
    expect(differs.locator("summary")).to_have_text(["added new.py", "changed train.py"])
    differs.get_by_text("train.py").click()
    expect(differs.locator("[data-kind=removed]")).to_contain_text("lr = 0.1")
    expect(differs.locator("[data-kind=added]").last).to_contain_text("lr = 0.2")


def test_brushes_of_parallel_coordinates_choose_runs(page: Page, submit: Submit, node: Agent) -> None:
    numbers = []
    for at, lr in enumerate((0.1, 0.2, 0.3)):
        job = submit(name=f"run-{at}", command=["python", "train.py", "--lr", str(lr)])
        attempt = node.start()
        attempt.report(range(4), loss=lambda step, at=at: float(at + abs(step - 2)))
        attempt.end()
        numbers.append(str(job["number"]))
    visit(page, f"/compare?jobs={','.join(numbers)}")
    panel = page.get_by_role("region", name="Runs compared")
    expect(panel.get_by_role("group")).to_have_count(3)
    status, rows = panel.get_by_role("status"), page.locator("table.runs tbody tr")
    expect(status).to_have_text("3 runs")
    # The best value is that of the whole curve: the newest one is larger.
    expect(rows.first.locator("td.num")).to_have_text([numbers[0], "1", "0"])
    brush(page, "parameter:--lr", 0.7, 1)
    expect(status).to_have_text("1 of 3 runs selected")
    expect(page.locator("tr[data-hidden]")).to_have_count(2)
    expect(page.get_by_label(f"Show run {numbers[0]}")).to_be_disabled()
    page.reload()
    expect(status).to_have_text("1 of 3 runs selected")
    panel.get_by_role("button", name="3 of 3 axes").click()
    page.get_by_role("checkbox", name="--lr").uncheck()
    page.keyboard.press("Escape")
    expect(status).to_have_text("3 runs")
    expect(page.locator("tr[data-hidden]")).to_have_count(0)


def test_metrics_are_ticked_and_a_run_is_hidden_and_left_out(page: Page, runs: list[int]) -> None:
    visit(page, f"/compare?jobs={runs[0]},{runs[1]}&metrics=loss")
    expect(page.locator(".runs-chart .chart-title")).to_have_text(["loss"])
    page.get_by_role("button", name="1 of 2 metrics").click()
    # Before the address, and the page after it, can follow the first.
    page.get_by_role("dialog", name="Metrics").evaluate(
        "it => it.querySelectorAll('input').forEach(each => each.click())"
    )
    expect(page.locator(".runs-chart .chart-title")).to_have_text(["val/accuracy"])
    page.keyboard.press("Escape")
    page.get_by_label(f"Show run {runs[0]}").uncheck()
    expect(page.locator("tr[data-hidden]")).to_have_count(1)
    page.get_by_label(f"Leave out run {runs[0]}").press("Enter")
    expect(page.locator(".runs tbody tr")).to_have_count(1)
    expect(page.get_by_label(f"Leave out run {runs[1]}")).to_be_focused()
    expect(page).to_have_url(re.compile(rf"jobs=(%22)?{runs[1]}"))


def test_a_rerun_shows_its_code_and_what_it_has_changed(
    page: Page, runs: list[int], live_service: Live, node: Agent
) -> None:
    code = uploaded(live_service.client, train__py="lr = 0.5\n", same__py="pass\n")
    changes = {"code": code, "time_limit": "3h"}
    again = live_service.client.post(f"/api/v1/jobs/{runs[0]}/rerun", json={"changes": changes}).raise_for_status()
    packages = {"scipy": "1.14", "torch": "2.12.0"}
    node.start().environment(wire.Environment(interpreter="/v/bin/python", python="3.12.1", packages=packages))
    visit(page, f"/jobs/{again.json()['number']}/spec")
    changed = page.get_by_role("region", name=f"Changed since job {runs[0]}")
    expect(changed.locator("dt")).to_have_text(["time_limit"])
    expect(changed.locator("del")).to_be_visible()
    shown = page.get_by_role("region", name="Code", exact=True)
    expect(shown.get_by_role("region", name="train.py")).to_contain_text("lr = 0.5")
    shown.get_by_role("button", name="same.py").click()
    expect(shown.get_by_role("region", name="same.py")).to_contain_text("pass")
    shown.get_by_role("button", name="Changes since the job before").click()
    expect(shown.locator("[data-kind=removed]").first).to_contain_text("lr = 0.1")
    installed = page.get_by_role("region", name="Environment", exact=True)
    expect(installed.locator("dt")).to_have_text(["Python", "numpy", "scipy"])
    expect(installed.locator("ins")).to_have_text(["3.12.1", "not installed", "1.14"])
    installed.get_by_label("Filter packages").fill("Sci")
    expect(installed.locator("li")).to_have_text(["scipy 1.14"])
    page.get_by_role("link", name="Compare both").click()
    expect(page).to_have_url(re.compile("/compare"))
