"""Many watchers of one service: ``python -m benchmarks.watchers``.

Jobs report 100 points a second each and print; pollers read lists and jobs once a second, with ETags; others follow
logs and submit. All clients are one process on the same cores as the service. An application of FastAPI with one empty
route gets as many requests from the same clients just before: what a request costs here at the least.
"""

import argparse
import asyncio
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import psutil
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks import results
from benchmarks.figure import Figure, summarise
from benchmarks.stack import Stack, dumps, embedded

JOBS, POLLERS, FOLLOWERS, SUBMITTERS = 4, 100, 30, 8
#: The clients are these people's, members of one project.
PEOPLE = 10
PERIOD_S = 1.0
EMPTY_S = 10.0

#: Goals in milliseconds: p50 and p99.
TARGETS = {"lists": (50, 400), "single jobs": (50, 400), "submissions": (80, None), "log lag": (300, None)}

#: 100 points a second, and ten lines that say when they were written.
WORK = """
import time, torchyard
begin, step = time.monotonic(), 0
while True:
    torchyard.report(step=step, loss=1.0 / (step + 1))
    if step % 10 == 0:
        print("at", time.time_ns(), flush=True)
    step += 1
    time.sleep(max(0.0, begin + step / 100 - time.monotonic()))
"""
_WRITTEN = re.compile(rb"at (\d{19})\\n")

#: Prints its port and answers nothing on one route.
EMPTY_APP = """
import socket, fastapi, uvicorn
app = fastapi.FastAPI()
@app.get("/")
async def nothing() -> dict[str, str]:
    return {}
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, loop="uvloop", log_level="warning", access_log=False)).run([listening])
"""


@dataclass
class Watched:
    """Milliseconds by kind, and how often the answer was 304."""

    times: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    unchanged: int = 0

    @property
    def requests(self) -> int:
        """Requests that were answered."""
        return sum(len(times) for kind, times in self.times.items() if kind != "log lag")


class Client:
    """One keep-alive connection, as cheap as asyncio allows."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
        self._reader, self._writer, self._head = reader, writer, head
        self._tags: dict[str, str] = {}

    @classmethod
    @asynccontextmanager
    async def connect(cls, host: str, port: int, token: str) -> AsyncIterator["Client"]:
        """A connection that is signed in."""
        reader, writer = await asyncio.open_connection(host, port)
        try:
            yield cls(reader, writer, f"Host: {host}:{port}\r\nAuthorization: Bearer {token}\r\n")
        finally:
            writer.close()

    async def begin(self, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, str]]:
        """Send a request, with the ETag of the last answer; return status and headers of the answer."""
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        tag = f"If-None-Match: {self._tags[path]}\r\n" if path in self._tags and not body else ""
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{kind}{tag}\r\n".encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        if "etag" in headers:
            self._tags[path] = headers["etag"]
        return int(head[0].split()[1]), headers

    async def request(self, method: str, path: str, body: bytes = b"") -> int:
        """Return the status of an answer, which is read to its end."""
        status, headers = await self.begin(method, path, body)
        await self._reader.readexactly(int(headers.get("content-length", 0)))
        return status

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the parts of an answer without an end as they come."""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]


async def _repeat(watched: Watched, kind: str, place: float, until: float, send: Callable[[], Awaitable[int]]) -> None:
    """Send once a period from a moment on, and note how long each answer took; a late one moves no other."""
    due = time.monotonic() + place * PERIOD_S
    while due < until:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        begin = time.perf_counter()
        status = await send()
        watched.times[kind].append(1e3 * (time.perf_counter() - begin))
        if status not in (200, 201, 304):
            raise RuntimeError(f"{kind}: {status}")
        watched.unchanged += status == 304
        due = max(due + PERIOD_S, time.monotonic())


@dataclass(frozen=True)
class Scene:
    """A stack with jobs that run, and the tokens of people who watch them."""

    stack: Stack
    tokens: list[str]
    jobs: list[str]

    def connect(self, number: int) -> AbstractAsyncContextManager["Client"]:
        """A connection of one of the people."""
        return Client.connect(self.stack.host, self.stack.port, self.tokens[number % PEOPLE])


async def _poll(watched: Watched, scene: Scene, number: int, until: float) -> None:
    job = scene.jobs[number // 2 % JOBS]
    kind, path = ("lists", "/api/v1/jobs") if number % 2 else ("single jobs", f"/api/v1/jobs/{job}")
    async with scene.connect(number // 2) as client:
        await _repeat(watched, kind, number / POLLERS, until, lambda: client.request("GET", path))


async def _submit(watched: Watched, scene: Scene, number: int, until: float) -> None:
    body = dumps({"name": "watched", "launcher": "none", "command": ["true"], "resources": {"gpus": 1}})
    async with scene.connect(number) as client:
        send = lambda: client.request("POST", "/api/v1/jobs", body)  # noqa: E731  as the others
        await _repeat(watched, "submissions", number / SUBMITTERS, until, send)


async def _follow(watched: Watched, scene: Scene, number: int) -> None:
    async with scene.connect(number) as client:
        await client.begin("GET", f"/api/v1/jobs/{scene.jobs[number % JOBS]}/logs/stream")
        begin = time.time_ns()
        async for chunk in client.chunks():
            now = time.time_ns()
            written = (int(each) for each in _WRITTEN.findall(chunk))
            watched.times["log lag"] += [(now - each) / 1e6 for each in written if each > begin]


async def _watch(scene: Scene, seconds: float) -> Watched:
    watched, until = Watched(), time.monotonic() + seconds
    following = [asyncio.create_task(_follow(watched, scene, number)) for number in range(FOLLOWERS)]
    await asyncio.gather(
        *(_poll(watched, scene, number, until) for number in range(POLLERS)),
        *(_submit(watched, scene, number, until) for number in range(SUBMITTERS)),
    )
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    return watched


async def _ask_empty(port: int) -> Watched:
    watched, until = Watched(), time.monotonic() + EMPTY_S

    async def ask(number: int) -> None:
        async with Client.connect("127.0.0.1", port, "none") as client:
            place = number / (POLLERS + SUBMITTERS)
            await _repeat(watched, "empty route", place, until, lambda: client.request("GET", "/"))

    await asyncio.gather(*map(ask, range(POLLERS + SUBMITTERS)))
    return watched


@contextmanager
def _empty_app() -> Iterator[tuple[int, psutil.Process]]:
    """FastAPI with one empty route, in a process of its own."""
    with subprocess.Popen([sys.executable, "-c", EMPTY_APP], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), psutil.Process(process.pid)
        finally:
            process.terminate()


@dataclass(frozen=True, kw_only=True)
class Cost:
    """CPU time of a process while it was watched."""

    cpu_s: float
    wall_s: float
    requests: int

    def __str__(self) -> str:
        per_thousand = 1000 * self.cpu_s / self.requests
        return f"{self.cpu_s / self.wall_s:.2f} of a core, {per_thousand:.2f} s of CPU for 1,000 requests"


def _costing(process: psutil.Process, watch: Callable[[], Watched]) -> tuple[Watched, Cost]:
    before, begin = process.cpu_times(), time.monotonic()
    watched = watch()
    after, wall_s = process.cpu_times(), time.monotonic() - begin
    cpu_s = after.user + after.system - before.user - before.system
    return watched, Cost(cpu_s=cpu_s, wall_s=wall_s, requests=watched.requests)


def _rows(watched: Watched) -> Iterator[list[str]]:
    for kind in sorted(watched.times):
        times = watched.times[kind]
        cuts = statistics.quantiles(times, n=100)
        goals = TARGETS.get(kind, (None, None))
        met = "" if goals[0] is None else "yes" if cuts[49] < goals[0] and cuts[98] < (goals[1] or 1e9) else "NO"
        target = " / ".join("" if goal is None else f"< {goal}" for goal in goals).rstrip(" /")
        yield [kind, f"{len(times):,}", f"{cuts[49]:,.1f}", f"{cuts[98]:,.1f}", target, met]


def figures(watched: Watched, empty: Watched) -> Iterator[Figure]:
    """Yield p50 and p99 of each kind that has a goal, beside the empty route's."""
    least = statistics.quantiles(itertools.chain(*empty.times.values()), n=100)
    for kind, goals in TARGETS.items():
        cuts = statistics.quantiles(watched.times[kind], n=100)
        for number, goal in zip((50, 99), goals, strict=True):
            took = cuts[number - 1]
            yield Figure(
                name=f"{kind}, p{number}", value=took, unit="ms", target=f"< {goal}" if goal else "",
                met=goal is None or took < goal, baseline=least[number - 1], against="empty route",
            )  # fmt: skip


def _set(stack: Stack) -> Scene:
    connection = stack.connect()
    tokens = []
    for name in (f"watcher-{number}" for number in range(PEOPLE)):
        connection.json("POST", "/api/v1/users", {"name": name})
        connection.json("PUT", f"/api/v1/projects/default/members/{name}", {"role": "member"})
        asked = {"name": "benchmark", "scopes": ["submit"], "user": name}
        tokens.append(str(connection.json("POST", "/api/v1/tokens", asked)["secret"]))
    jobs = [stack.submit(connection, command=["python", "-c", WORK], launcher="python") for _ in range(JOBS)]
    while any(connection.json("GET", f"/api/v1/jobs/{job}").get("progress") is None for job in jobs):
        time.sleep(0.2)
    return Scene(stack, tokens, jobs)


def main() -> None:
    """Starts a stack, has it watched, and prints what that took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watchers")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--record", action="store_true", help="write results.json")
    options = parser.parse_args()
    os.environ["TORCHYARD_ONE_TRUST_DOMAIN"] = "1"  # the people have no accounts here
    with embedded(slots=JOBS) as stack, _empty_app() as (port, bare):
        scene = _set(stack)
        service = psutil.Process(json.loads((stack.home / "service.json").read_text())["pid"])
        empty, least = _costing(bare, lambda: uvloop.run(_ask_empty(port)))
        watched, cost = _costing(service, lambda: uvloop.run(_watch(scene, options.seconds)))
    table = Table("kind", "count", "p50 ms", "p99 ms", "target", "met")
    for row in [*_rows(watched), *_rows(empty)]:
        table.add_row(*row)
    console = Console(width=110)
    console.print(table)
    console.print(f"service: {cost}; {watched.unchanged:,} of {watched.requests:,} answers were 304", highlight=False)
    console.print(f"empty application: {least}", highlight=False)
    if options.record:
        results.report("many watchers", list(summarise(figures(watched, empty))))


if __name__ == "__main__":
    main()
