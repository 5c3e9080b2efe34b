"""How fast the dashboard shows what is large: its first view, a table of many jobs, the end of a log of 1 GiB."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext
from sqlalchemy import create_engine, delete, insert, select

from benchmarks.figure import Figure
from service.db.models import Job, LogStream

#: Jobs that have ended, beside those of the other measurements.
JOBS = 100_000
LOG_BYTES = 1 << 30
SCROLL_S = 5
#: A frame at 60 a second lasts 16.7 ms, as the browser's clock tells it.
FRAME_MS = 17
#: When something was first painted, and bytes over the wire of files: the page's own with what they import (what the
#: build limits), and all that home asks for, the parts that are loaded when they are shown among them.
LOADED = """() => {
    const painted = performance.getEntriesByName("first-contentful-paint")[0].startTime;
    const { domContentLoadedEventStart: begun } = performance.getEntriesByType("navigation")[0];
    const files = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/assets/"));
    const bytes = some => some.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
    return { painted, first: bytes(files.filter(({ startTime }) => startTime < begun)), all: bytes(files) };
}"""
#: Milliseconds from frame to frame while the table moves by two rows a frame.
SCROLL = """(table, ms) => new Promise(resolve => {
    const frames = [];
    let before = performance.now();
    const begun = before;
    const next = now => {
        frames.push(now - before);
        before = now;
        table.scrollTop += 64;
        if (now - begun < ms) requestAnimationFrame(next);
        else resolve(frames.slice(1));
    };
    requestAnimationFrame(next);
})"""


def first_view(chromium: Browser, signed_in: BrowserContext, url: str) -> Iterator[Figure]:
    """Opens home in a browser that has none of its files yet."""
    state: Any = signed_in.storage_state()
    context = chromium.new_context(base_url=url, storage_state=state, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto("/")
    page.get_by_role("heading", name="Jobs").wait_for()
    page.wait_for_load_state("load")
    loaded = page.evaluate(LOADED)
    context.close()
    size = loaded["first"] / 1000
    yield Figure(name="home: script and styles, compressed", value=size, unit="kB", target="< 150", met=size < 150)
    yield Figure(name="home: with its parts, compressed", value=loaded["all"] / 1000, unit="kB")
    yield Figure(name="home: first contentful paint", value=loaded["painted"], unit="ms")


def scrolled_table(context: BrowserContext, database: str, job: str) -> Iterator[Figure]:
    """Scrolls through the table of jobs, filled with copies of one that has ended."""
    engine = create_engine(database)
    with engine.begin() as tx:
        row = dict(tx.execute(select(Job.__table__).where(Job.id == job)).mappings().one())
        first = row["number"] + 1_000
        many = [{**row, "id": f"job-{n:09d}", "number": n, "name": f"n{n}"} for n in range(first, first + JOBS)]
        tx.execute(insert(Job), many)
    engine.dispose()
    page = context.new_page()
    page.goto("/")
    page.get_by_role("link", name=f"n{first + JOBS - 1}").wait_for()
    frames = sorted(page.get_by_role("table", name="Jobs").evaluate(SCROLL, SCROLL_S * 1000))
    page.close()
    median = frames[len(frames) // 2]
    yield Figure(
        name="table while scrolled: frame, median", value=median, unit="ms", target="< 17", met=median < FRAME_MS
    )
    yield Figure(name="table while scrolled: frame, 95 of 100", value=frames[len(frames) * 95 // 100], unit="ms")


def large_log(context: BrowserContext, database: str, artifacts: Path, job: int, attempt: str) -> Iterator[Figure]:
    """Opens a log of a gigabyte; from the click on until its last line is in sight."""
    path = artifacts / "logs" / attempt / "0.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = b"".join(b"step %08d loss 0.12345 and so on until the line is full\n" % n for n in range(1 << 14))
    with path.open("wb") as file:
        while file.tell() < LOG_BYTES:
            file.write(part)
        file.write(b"the last line\n")
    engine = create_engine(database)
    with engine.begin() as tx:
        tx.execute(delete(LogStream).where(LogStream.attempt_id == attempt, LogStream.rank == 0))
        tx.execute(insert(LogStream).values(attempt_id=attempt, rank=0, size=path.stat().st_size))
    engine.dispose()
    page = context.new_page()
    page.goto(f"/jobs/{job}")
    page.get_by_role("tab", name="Log").wait_for()
    began = time.perf_counter()
    page.get_by_role("tab", name="Log").click()
    page.get_by_role("log").get_by_text("the last line").wait_for()
    took = time.perf_counter() - began
    page.close()
    yield Figure(name="log of 1 GiB: to its last line", value=took, unit="s", target="< 1", met=took < 1)
