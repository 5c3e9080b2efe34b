"""The log of a job: read by range, searched by the service, with its colours, errors and times."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect
from sqlalchemy import insert, select, update

from service.db.models import Attempt, LogStream
from tests.support.browser import visit
from tests.support.live import Live
from tests.support.scripted import Agent
from torchyard.ids import AttemptId

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("lived_in")]
Submit = Callable[..., dict[str, Any]]
LINES = 1_000_000


def _lines(count: int) -> bytes:
    """Lines with their numbers, which to format one by one takes a second for a million."""
    lines = np.tile(np.frombuffer(b"line 000000000 " + b"x" * 40 + b"\n", np.uint8), (count, 1))
    for place in range(9):
        lines[:, 13 - place] = ord("0") + np.arange(count) // 10**place % 10
    return lines.tobytes()


def _log(page: Page, number: int) -> Locator:
    visit(page, f"/jobs/{number}/log")
    return page.get_by_role("log")


def test_colours_errors_and_words_are_shown(page: Page, submit: Submit, node: Agent, tmp_path: Path) -> None:
    job = submit(name="talker")
    attempt = node.start()
    text = "".join(f"step {n} loss 0.5\n" for n in range(500))
    attempt.write(f"{text}\x1b[31mred\x1b[0m plain\nValueError: boom\n{text}")
    attempt.end()
    log = _log(page, job["number"])
    expect(page.get_by_text("complete, 1,002 lines")).to_be_visible()
    page.get_by_role("button", name="1 line with errors").click()
    expect(log.locator("[data-current]")).to_contain_text("ValueError: boom")
    expect(log.locator(".ansi-1")).to_have_text("red")
    expect(page.locator(".log-marks[data-kind=error] i")).to_have_count(1)
    page.get_by_label("Search the log").fill("STEP 48")
    page.get_by_label("Search the log").press("Enter")  # before anything is found
    expect(log.locator("[data-current] mark")).to_have_text("step 48")
    page.get_by_label("Search the log").fill("STEP 49")
    expect(page.get_by_text("22 lines", exact=True)).to_be_visible()
    expect(page.locator(".log-results li").first).to_contain_text("step 49 loss")
    expect(page.locator(".log-results li").first).to_contain_text("step 48 loss")
    page.get_by_label("Search the log").press("Enter")
    expect(log.locator("[data-current] mark")).to_have_text("step 49")
    page.get_by_label("Search the log").press("Enter")
    expect(log.locator("[data-current]")).to_contain_text("step 490 loss")
    page.get_by_label("Go to line").fill("3")
    page.get_by_label("Go to line").press("Enter")
    expect(log.locator("[data-current]")).to_contain_text("step 2 loss")
    page.get_by_label("Times").check()
    expect(log.locator(".log-time").first).to_contain_text(":")
    with page.expect_download() as started:
        page.get_by_role("link", name="Download").click()
    started.value.save_as(tmp_path / "log")
    assert (tmp_path / "log").read_text().count("\n") == 1_002


def test_what_comes_while_the_log_grows_is_marked_and_found(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="grows")
    attempt = node.start()
    attempt.write("fine\n")
    log = _log(page, job["number"])
    expect(log).to_contain_text("fine")
    page.get_by_label("Search the log").fill("fine")
    expect(page.get_by_text("1 line", exact=True)).to_be_visible()
    attempt.write("ValueError: boom\nfi")
    marks = page.locator(".log-marks[data-kind=error] i")
    expect(marks).to_have_count(1)
    attempt.write("ne\nKeyError: x\n")
    expect(marks).to_have_count(2)
    expect(page.get_by_role("button", name="2 lines with errors")).to_be_visible()
    expect(page.get_by_text("2 lines", exact=True)).to_be_visible()
    expect(page.locator(".log-results li")).to_have_count(2)


def test_ranks_are_merged_by_time(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="ranks")
    attempt = node.start()
    attempt.write("first of rank 0\n")
    attempt.write("first of rank 1\n", rank=1)
    log = _log(page, job["number"])
    page.get_by_role("button", name="all by time").click()
    expect(log.locator(".log-text")).to_have_text(["first of rank 0", "first of rank 1"])
    attempt.write("second of rank 0\n")
    expect(log.locator(".log-text")).to_have_text(["first of rank 0", "first of rank 1", "second of rank 0"])
    expect(log.locator(".log-rank")).to_have_text(["0", "1", "0"])


def test_a_large_log_opens_at_once_and_scrolls_by_range(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    job = submit(name="large")
    node.start().end()
    ctx = live_service.context
    with ctx.db.read() as tx:
        attempt = AttemptId(str(tx.scalar(select(Attempt.id).where(Attempt.job_id == job["id"]))))
    path = ctx.store.log_path(attempt, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    size = path.write_bytes(_lines(LINES))
    with ctx.db.write() as tx:
        changed = tx.execute(
            update(LogStream).where(LogStream.attempt_id == attempt, LogStream.rank == 0).values(size=size)
        )
        if not changed.rowcount:
            tx.execute(insert(LogStream).values(attempt_id=attempt, rank=0, size=size))
    log = _log(page, job["number"])
    expect(log).to_contain_text(f"line {LINES - 1:09d}")
    expect(page.get_by_text(f"{LINES:,} lines")).to_be_visible()
    box = log.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.wheel(0, -3000)
    expect(page.get_by_role("button", name="Jump to end")).to_be_visible()
    expect(log).not_to_contain_text("…")
    page.get_by_label("Go to line").fill("500001")
    page.get_by_label("Go to line").press("Enter")
    expect(log.locator("[data-current]")).to_contain_text("line 000500000")
    page.get_by_role("button", name="Jump to start").click()
    expect(log.locator(".log-text").first).to_contain_text("line 000000000")
    assert page.locator(".log-line").count() < 200
    page.get_by_label("Search the log").fill("line 000777777")
    expect(page.get_by_text("1 line", exact=True)).to_be_visible()
    page.get_by_label("Search the log").press("Enter")
    expect(log.locator("[data-current]")).to_contain_text("line 000777777")
