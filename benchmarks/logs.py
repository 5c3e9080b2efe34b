"""Logs of ranks: how soon a follower has a line, and how fast a rank may write."""

import asyncio
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.stack import Stack
from benchmarks.watchers import Client

_LINES = 200
#: Lines that say when they were written, twenty a second.
TICKS = f"import time\nfor _ in range({_LINES}):\n    print('at', time.time_ns(), flush=True)\n    time.sleep(0.05)\n"
_WRITTEN = re.compile(rb"at (\d{19})\\n")
FLOOD_MB = 400
#: Writes its log in lines of 100 characters, then its seconds into a file.
FLOOD = f"""
import sys, time
piece = (b"x" * 99 + b"\\n") * 640
begin = time.perf_counter()
for _ in range({FLOOD_MB} * 10**6 // len(piece)):
    sys.stdout.buffer.write(piece)
sys.stdout.buffer.flush()
open(sys.argv[1], "w").write(str(time.perf_counter() - begin))
"""


def follow(stack: Stack) -> Iterator[Figure]:
    """From the rank's `print` to the reader of the log's stream, nothing else running."""
    connection = stack.connect()
    job = stack.submit(connection, command=[sys.executable, "-c", TICKS])
    lags = asyncio.run(_lags(stack, job))
    stack.finished(connection, job)
    p50 = statistics.median(lags)
    yield Figure(name="log line to its follower, p50", value=p50, unit="ms", target="< 200", met=p50 < 200)


async def _lags(stack: Stack, job: str) -> list[float]:
    lags: list[float] = []
    async with Client.connect(stack.host, stack.port, stack.token) as client:
        await client.begin("GET", f"/api/v1/jobs/{job}/logs/stream")
        begin, deadline = time.time_ns(), time.monotonic() + 60
        async for chunk in client.chunks():
            now = time.time_ns()
            lags += [(now - int(each)) / 1e6 for each in _WRITTEN.findall(chunk) if int(each) > begin]
            if len(lags) >= _LINES // 2 or time.monotonic() > deadline:
                break
    return lags


def flood(stack: Stack) -> Iterator[Figure]:
    """What a rank can write to its log a second, against a file in the same folder."""
    connection = stack.connect()
    with tempfile.TemporaryDirectory(prefix="ty-bench-", dir="/tmp") as folder:
        took, program = Path(folder, "seconds"), [sys.executable, "-c", FLOOD]
        stack.finished(connection, stack.submit(connection, command=[*program, str(took)]))
        rate = FLOOD_MB / float(took.read_text())
        with Path(folder, "log").open("wb") as file:
            subprocess.run([*program, str(took)], stdout=file, check=True)
        plain = FLOOD_MB / float(took.read_text())
    yield Figure(
        name="a rank writes its log", value=rate, unit="MB/s", target=">= 100", met=rate >= 100,
        baseline=plain, against="a file",
    )  # fmt: skip


ALL = (follow, flood)
