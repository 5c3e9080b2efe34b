"""What is measured. Each function answers rows: name, value, unit, target, baseline of the same run."""

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks import first_step, footprint, load, logs, scheduling
from benchmarks.figure import Figure
from benchmarks.http import KeepAliveConnection
from benchmarks.stack import Stack, dumps, node_token

CLOCK = ["date", "+%s%N"]


def start_latency(stack: Stack, runs: int = 100) -> Iterator[Figure]:
    """REST submit to the job's own first instruction, queue idle, against a bare spawn of the same program."""
    connection = stack.connect()
    delays = []
    for _ in range(runs):
        before = time.time_ns()
        job = stack.submit(connection, command=CLOCK)
        stack.finished(connection, job)
        _, _, log = connection.request("GET", f"/api/v1/jobs/{job}/logs")
        delays.append((int(log.split()[0]) - before) / 1e6)
    bare = []
    for _ in range(runs):
        before = time.time_ns()
        bare.append((int(subprocess.run(CLOCK, capture_output=True, check=True).stdout) - before) / 1e6)
    p50, p99 = statistics.median(delays), statistics.quantiles(delays, n=100)[-1]
    spawn = statistics.median(bare)
    yield Figure(
        name="submit to first instruction, p50", value=p50, unit="ms", target="<= 40", met=p50 <= 40,
        baseline=spawn, against="bare spawn",
    )  # fmt: skip
    yield Figure(name="submit to first instruction, p99", value=p99, unit="ms", target="<= 120", met=p99 <= 120)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request, again and again; an answer with another status ends the benchmark."""

    method: str
    path: str
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    def repeat(self, stack: Stack, _worker: int, until: float) -> int:
        """Sends it on a connection of its own until `until`; returns how often it was answered."""
        connection, count = stack.connect(), 0
        while time.time() < until:
            status, _, answer = connection.request(self.method, self.path, self.body, **self.headers)
            if status != self.status:
                raise RuntimeError(f"{status} instead of {self.status}: {answer.decode()}")
            count += 1
        connection.close()
        return count


EMPTY = Call(method="GET", path="/healthz", status=200)


def submissions(stack: Stack) -> Iterator[Figure]:
    """Submissions a second from four connections, against the same service's empty route."""
    body = dumps({"name": "bench", "launcher": "none", "command": ["true"], "resources": {"gpus": 1}})
    connection = stack.connect()
    (node,) = connection.json("GET", "/api/v1/nodes")["items"]
    connection.json("POST", f"/api/v1/nodes/{node['name']}/drain")  # what is submitted here must not start
    empty = load.rate(partial(EMPTY.repeat, stack))
    rate = load.rate(partial(Call(method="POST", path="/api/v1/jobs", status=201, body=body).repeat, stack))
    yield Figure(
        name="submissions",
        value=rate,
        unit="/s",
        target=">= 400",
        met=rate >= 400,
        baseline=empty,
        against="empty route",
    )


def polls(stack: Stack) -> Iterator[Figure]:
    """Status polls answered 304 a second, against the same service's empty route."""
    connection = stack.connect()
    job = stack.submit(connection, command=["true"])
    stack.finished(connection, job)
    _, headers, _ = connection.request("GET", f"/api/v1/jobs/{job}")
    tag = {"If_None_Match": headers["etag"]}
    empty = load.rate(partial(EMPTY.repeat, stack))
    rate = load.rate(partial(Call(method="GET", path=f"/api/v1/jobs/{job}", status=304, headers=tag).repeat, stack))
    yield Figure(
        name="status polls (304)", value=rate, unit="/s", target=">= 2000", met=rate >= 2000,
        baseline=empty, against="empty route",
    )  # fmt: skip


def drain(stack: Stack, jobs: int = 60) -> Iterator[Figure]:
    """No-op jobs from submission to the end of the last one, a second, on the slots of the box."""
    connection = stack.connect()
    begin = time.time()
    names = [stack.submit(connection, command=["true"]) for _ in range(jobs)]
    for job in names:
        stack.finished(connection, job)
    rate = jobs / (time.time() - begin)
    begin = time.time()
    for _ in range(jobs):
        subprocess.run(["true"], check=True)
    bare = jobs / (time.time() - begin)
    yield Figure(
        name="no-op jobs drained on 2 slots", value=rate, unit="/s", target=">= 40", met=rate >= 40,
        baseline=bare, against="bare spawn",
    )  # fmt: skip


def ingest(stack: Stack, batch: int = 1000, batches: int = 200) -> Iterator[Figure]:
    """Metric points stored a second through the agent's route, against parsing the same JSON only."""
    connection, agent = stack.connect(), stack.connect(node_token(stack))
    job = stack.submit(connection, command=["sleep", "600"])
    path = f"/api/v1/agent/attempts/{_attempt(connection, job)}/metrics"
    bodies = [_batch(first, batch) for first in range(0, batches * batch, batch)]
    begin = time.perf_counter()
    for body in bodies:
        status, _, answer = agent.request("POST", path, body)
        if status >= 300:
            raise RuntimeError(answer.decode())
    rate = batches * batch / (time.perf_counter() - begin)
    connection.json("POST", f"/api/v1/jobs/{job}/cancel")
    stack.finished(connection, job)
    yield Figure(
        name="metric points ingested", value=rate, unit="/s", target=">= 50000", met=rate >= 50_000,
        baseline=_parse_rate(bodies, batch), against="pydantic alone",
    )  # fmt: skip


def _batch(first: int, size: int) -> bytes:
    numbers = range(first, first + size)
    records = [
        [n, {"step": n, "time_us": 1_700_000_000_000_000 + n, "values": {"loss": 1.0 / (n + 1)}}] for n in numbers
    ]
    place = {"node_rank": 0, "stream": "bench", "rank": 0, "offset": first, "end": first + size}
    return dumps(place | {"records": records})


def _attempt(connection: KeepAliveConnection, job: str) -> str:
    while True:
        _, _, answer = connection.request("GET", f"/api/v1/jobs/{job}/attempts")
        attempts = json.loads(answer)
        if attempts and attempts[0]["started_at"]:
            return str(attempts[0]["id"])
        time.sleep(0.05)


def _parse_rate(bodies: list[bytes], batch: int) -> float:
    from torchyard.wire import MetricBatch

    begin = time.perf_counter()
    for body in bodies:
        MetricBatch.model_validate_json(body)
    return len(bodies) * batch / (time.perf_counter() - begin)


#: Prints microseconds of a call beyond those of an empty loop, the percentage that reporting adds to steps of a
#: millisecond, and milliseconds of the import.
REPORT = """
import time

begin = time.perf_counter()
import torchyard
torchyard.report(step=0, loss=1.0)
imported = (time.perf_counter() - begin) * 1e3

def nothing(step, loss): pass

def calls(function, values):
    begin = time.perf_counter()
    for n, value in enumerate(values):
        function(step=n, loss=value)
    return (time.perf_counter() - begin) / len(values) * 1e6

def steps(function, count=200):
    spent = 0.0
    for n in range(count):
        until = time.perf_counter() + 0.001
        while time.perf_counter() < until: pass
        before = time.perf_counter()
        function(step=n, loss=1.0)
        spent += time.perf_counter() - before
    return spent / count * 1e6

values = [1.0 / (n + 1) for n in range(50_000)]
call = calls(torchyard.report, values) - calls(nothing, values)
pairs = sorted(steps(torchyard.report) - steps(nothing) for _ in range(5))
print(call, pairs[2] / 1000 * 100, imported)
"""


def report_cost(stack: Stack) -> Iterator[Figure]:
    """One `torchyard.report` call in a training process, against writing the same line to a file."""
    connection = stack.connect()
    job = stack.submit(connection, command=["python", "-c", REPORT], launcher="python")
    stack.finished(connection, job)
    _, _, log = connection.request("GET", f"/api/v1/jobs/{job}/logs")
    cost, share, imported = map(float, log.split()[:3])
    yield Figure(
        name="one torchyard.report call", value=cost, unit="us", target="< 3", met=cost < 3,
        baseline=_line_cost(), against="write a line",
    )  # fmt: skip
    yield Figure(name="report at each step of 1 ms", value=share, unit="%", target="< 0.5", met=share < 0.5)
    yield Figure(name="import torchyard, first report", value=imported, unit="ms", target="< 5", met=imported < 5)


def _line_cost(lines: int = 50_000) -> float:
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "lines").open("wb", buffering=0) as file:
        begin = time.perf_counter()
        for n in range(lines):
            file.write(dumps({"step": n, "loss": 1.0 / (n + 1)}) + b"\n")
        return (time.perf_counter() - begin) / lines * 1e6


ALL = (
    *(start_latency, first_step.first_step, drain, report_cost, ingest, polls, submissions),
    *(scheduling.passes, scheduling.policy_passes),
    *footprint.ALL,
    *logs.ALL,
)
