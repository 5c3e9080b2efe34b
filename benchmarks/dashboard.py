"""What the dashboard costs a tab and, for each watcher, the service; and how long it takes to show what is large.

`python -m benchmarks.dashboard` runs the service as a process, a node that only talks, and a real Chromium. A job of
two ranks reports ten points a second from each; the box and the list of jobs are idle.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page

from benchmarks import results, views
from benchmarks.figure import Figure, summarise
from tests.support import browser, live, scripted
from torchyard import wire
from torchyard.ids import now_us

#: Points a second of each rank.
RATE = 10
RANKS = 2
WATCHERS = 100


class _Background:
    """A thread that runs until it is left."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        raise NotImplementedError


class Training(_Background):
    """A job whose ranks report, each point in a batch of its own, and write a line of log a second."""

    def __init__(self, agent: scripted.Agent, attempt: scripted.Attempt) -> None:
        super().__init__()
        self._agent, self._attempt = agent, attempt

    def _run(self) -> None:
        began, step = time.monotonic(), 0
        while not self._over.wait(max(0.0, began + step / RATE - time.monotonic())):
            for rank in range(RANKS):
                values = dict.fromkeys(("train/loss", "lr", "grad_norm", "throughput"), 1.0 / (step + 1))
                record = wire.MetricRecord(step=step, time_us=now_us(), values=values, total_steps=100_000)
                batch = wire.MetricBatch(
                    node_rank=0, stream=f"rank-{rank}", rank=rank, offset=step, end=step + 1, records=[(step, record)]
                )
                path = f"attempts/{self._attempt.id}/metrics"
                self._agent.send("POST", path, content=batch.model_dump_json().encode())
            if step % RATE == 0:
                self._attempt.write(f"step {step}\n")
            step += 1


class Node(_Background):
    """Heartbeats and samples, as an idle node sends them."""

    def __init__(self, agent: scripted.Agent) -> None:
        super().__init__()
        self._agent = agent

    def _run(self) -> None:
        while not self._over.wait(2.0):
            self._agent.sample({"cpu.percent": 5.0, "memory.used": 2.0**34, "gpu.0.utilization": 1.0})
            self._agent.orders()


def _tab(page: Page, seconds: float) -> tuple[float, float]:
    """Requests and seconds of CPU time, a minute."""
    counted: list[str] = []
    devtools = page.context.new_cdp_session(page)
    # The time that the thread itself has worked: others may share the cores.
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.wait_for_timeout(5_000)
    page.context.on("request", lambda request: counted.append(request.url))
    before = _task_time(devtools)
    page.wait_for_timeout(seconds * 1_000)
    spent = _task_time(devtools) - before
    return len(counted) * 60 / seconds, spent * 60 / seconds


def _task_time(devtools: Any) -> float:
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _watchers(url: str, token: str, topics: list[str], count: int) -> Iterator[list[int]]:
    """Streams that are read by threads of their own process time, which does not count."""
    received = [0] * count
    clients = [
        httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) for _ in range(count)
    ]

    def follow(number: int) -> None:
        with (
            contextlib.suppress(httpx.HTTPError),
            clients[number].stream("GET", "/api/v1/live", params={"topic": topics}) as answer,
        ):
            for chunk in answer.iter_raw():
                received[number] += len(chunk)

    threads = [threading.Thread(target=follow, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield received
    finally:
        for client in clients:
            client.close()


def _service(pid: int, seconds: float) -> float:
    before = _cpu(pid)
    time.sleep(seconds)
    return (_cpu(pid) - before) / seconds


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dashboard")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ty-bench-", dir="/tmp") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        os.environ["TORCHYARD_HOME"] = str(home)
        database = f"sqlite:///{folder}/bench.db"
        with live.process(database, home) as (process, url):
            rows = list(summarise(_measure(process.pid, url, home, database, options.seconds)))
    results.report("dashboard", rows)


def _measure(pid: int, url: str, home: Path, database: str, seconds: float) -> Iterator[Figure]:
    token, node_token = ((home / name).read_text().strip() for name in ("admin.token", "node.token"))
    with (
        live.connect(url, token) as client,
        scripted.connected(url, node_token) as agent,
        browser.chromium() as chromium,
    ):
        page = chromium.new_context(base_url=url, viewport={"width": 1440, "height": 900}).new_page()
        code = client.post("/api/v1/session/codes").raise_for_status().json()["code"]
        page.goto(f"/#login={code}")
        page.get_by_role("heading", name="Jobs").wait_for()
        yield from views.first_view(chromium, page.context, url)
        with Node(agent):
            for name, address in (("the box, idle", "/box"), ("jobs, idle", "/")):
                page.goto(address)
                yield from _page(name, *_tab(page, seconds))
            spec = {"command": ["train.py"], "launcher": "torchrun", "resources": {"gpus": 2}}
            job = client.post("/api/v1/jobs", json=spec).raise_for_status().json()
        attempt = agent.start()
        with Node(agent), Training(agent, attempt):
            page.goto("about:blank")
            alone = _service(pid, seconds)
            page.goto(f"/jobs/{job['number']}/charts")
            yield from _page("a running job", *_tab(page, seconds))
            watched = _service(pid, seconds)
            yield Figure(name="service: no watcher", value=alone, unit="cores")
            yield Figure(name="service: one tab more", value=watched - alone, unit="cores")
            page.goto("about:blank")
            cursor = client.get(f"/api/v1/jobs/{job['id']}/metrics").raise_for_status().json()["cursor"]
            with _watchers(url, token, [f"job:{job['id']}", f"metrics:{job['id']}:{cursor}"], WATCHERS) as received:
                time.sleep(3)
                many = _service(pid, seconds)
            yield Figure(
                name=f"service: {WATCHERS} watchers more", value=many - alone, unit="cores", target="< 0.5",
                met=many - alone < 0.5,
            )  # fmt: skip
            print(f"a watcher read {sum(received) / WATCHERS / 1024:.0f} KiB", file=sys.stderr)
        attempt.end()
        yield from views.large_log(page.context, database, home / "service" / "artifacts", job["number"], attempt.id)
        yield from views.scrolled_table(page.context, database, job["id"])


def _page(name: str, requests: float, cpu: float) -> Iterator[Figure]:
    yield Figure(name=f"{name}: requests", value=requests, unit="a minute", target="< 30", met=requests < 30)
    yield Figure(name=f"{name}: main thread", value=cpu, unit="CPU s a minute", target="< 3", met=cpu < 3)


if __name__ == "__main__":
    main()
