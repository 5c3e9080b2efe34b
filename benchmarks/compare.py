"""How fast many runs are compared: the first paint of the page, and how long a frame takes while its charts move.

`python -m benchmarks.compare` runs the service as a process and a real Chromium. By default 100 runs report 10 metrics
at 10,000 steps each; the rows are written to the database, as ingest would.
"""

import argparse
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page

from benchmarks import results
from benchmarks.figure import Figure, summarise
from tests.support import browser, live, scripted

#: What the figures of the file are of.
RUNS, METRICS, STEPS = 100, 10, 10_000
#: Notes the time of the first line that a chart has drawn, and of each frame.
PAINTED = """() => [...document.querySelectorAll(".runs-chart canvas")].some(canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.some(value => value !== 0);
})"""
#: Moves the charts as the pointer would, and returns the milliseconds that each move took until the chart under the
#: pointer was drawn; the others are drawn in turn, as there is time in a frame.
MOVES = """async () => {
    const over = document.querySelector(".runs-chart .u-over");
    const { left, top, width } = over.getBoundingClientRect();
    const send = (type, x) => over.dispatchEvent(new PointerEvent(type, {
        clientX: x, clientY: top + 40, shiftKey: true, bubbles: true, pointerId: 1,
    }));
    over.setPointerCapture = () => {};
    send("pointerdown", left + width / 2);
    const took = [];
    for (let at = 0; at < 60; at += 1) {
        await new Promise(requestAnimationFrame);
        const began = performance.now();
        send("pointermove", left + width / 2 - at * 3);
        await new Promise(requestAnimationFrame);
        await new Promise(done => setTimeout(done));
        took.push(performance.now() - began);
    }
    send("pointerup", left);
    return took;
}"""


def _rows(series: int, steps: int, seed: int) -> Iterator[tuple[int, int, int, int, float, int]]:
    noise = random.Random(seed)
    for step in range(steps):
        value = 2.5 / (1 + step / 900) + noise.random() * 0.2 + seed % 10 * 0.05
        yield series, step, step, 1_700_000_000_000_000 + step * 100_000, value, 0


def _fill(database: Path, steps: int) -> None:
    """Gives each series that was begun all of its points."""
    with sqlite3.connect(database, timeout=60) as connection:
        found = [row[0] for row in connection.execute("SELECT id FROM metric_series")]
        for series in found:
            connection.execute("DELETE FROM metric_points WHERE series_id = ?", (series,))
            connection.executemany("INSERT INTO metric_points VALUES (?, ?, ?, ?, ?, ?)", _rows(series, steps, series))
            connection.commit()


def _runs(url: str, home: Path, runs: int, metrics: int) -> str:
    token, node_token = ((home / name).read_text().strip() for name in ("admin.token", "node.token"))
    names = ["train/loss", "val/loss", "val/accuracy", *(f"layer_{at}/norm" for at in range(metrics))][:metrics]
    numbers = []
    with live.connect(url, token) as client, scripted.connected(url, node_token) as agent:
        for at in range(runs):
            spec = {"name": f"run-{at}", "command": ["train.py", str(at)], "launcher": "none", "resources": {"gpus": 1}}
            numbers.append(client.post("/api/v1/jobs", json=spec).raise_for_status().json()["number"])
            attempt = agent.start()
            attempt.report([0], **{name.replace("/", "__"): 1.0 for name in names})
            attempt.end()
    return ",".join(map(str, numbers))


def _measure(page: Page, numbers: str) -> Iterator[Figure]:
    began = time.perf_counter()
    page.goto(f"/compare?jobs={numbers}", wait_until="commit")
    page.wait_for_function(PAINTED, polling=20, timeout=120_000)
    yield _figure("first paint", time.perf_counter() - began, 2)
    page.get_by_text("first look").first.wait_for(state="detached", timeout=600_000)
    yield Figure(name="compare: every point of the first chart", value=time.perf_counter() - began, unit="s")
    page.wait_for_function("document.querySelectorAll('.runs-chart .badge').length === 0", timeout=600_000)
    took = sorted(page.evaluate(MOVES))
    yield _figure("a move, median", took[len(took) // 2] / 1000, 0.05)
    yield _figure("a move, 95 of 100", took[int(len(took) * 0.95)] / 1000, 0.05)


def _figure(name: str, seconds: float, limit: float) -> Figure:
    return Figure(name=f"compare: {name}", value=seconds, unit="s", target=f"< {limit:g}", met=seconds < limit)


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--metrics", type=int, default=METRICS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--screenshot", type=Path, help="a folder for pictures of the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ty-bench-", dir="/tmp") as folder:
        home, database = Path(folder) / "home", Path(folder) / "bench.db"
        home.mkdir()
        os.environ["TORCHYARD_HOME"] = str(home)
        with live.process(f"sqlite:///{database}", home) as (_, url):
            numbers = _runs(url, home, options.runs, options.metrics)
            _fill(database, options.steps)
            token = (home / "admin.token").read_text().strip()
            with live.connect(url, token) as client, browser.chromium() as chromium:
                page = chromium.new_context(base_url=url, viewport={"width": 1440, "height": 900}).new_page()
                code = client.post("/api/v1/session/codes").raise_for_status().json()["code"]
                page.goto(f"/#login={code}")
                page.get_by_role("heading", name="Jobs").wait_for()
                rows = list(summarise(_measure(page, numbers)))
                if options.screenshot is not None:
                    page.screenshot(path=options.screenshot / "compare.png", full_page=True)
    whole = (options.runs, options.metrics, options.steps) == (RUNS, METRICS, STEPS)
    results.report("comparison", rows, whole=whole)


if __name__ == "__main__":
    main()
