"""From a job's use of a GPU that is not its own until the service tells of it: ``python -m benchmarks.trespass``.

A real stack and a real job on a card that the machine does not have: the worker finds a recorded NVML
(`tests/support/opened_cards.py`), to which a process is on a card while it has a file of it open. The job comes and
goes at moments that know nothing of the worker's looks.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.http import KeepAliveConnection
from benchmarks.stack import embedded
from tests.support import opened_cards

#: Takes the card when it is told, and leaves it when it is told.
JOB = """
number=0
while :; do
  until [ -e {folder}/go-$number ]; do sleep 0.01; done
  exec 3< {card}
  date +%s.%N > {folder}/new && mv {folder}/new {folder}/began-$number
  until [ -e {folder}/leave-$number ]; do sleep 0.01; done
  exec 3<&-
  number=$((number + 1))
done
"""
LOOK_S = 0.01


def until(condition: Callable[[], bool]) -> float:
    """Wait for a condition; return when it came true."""
    while not condition():
        time.sleep(LOOK_S)
    return time.time()


def measure(connection: KeepAliveConnection, folder: Path, times: int) -> Iterator[float]:
    """Yield the seconds until `GET /nodes` names the job's process, so many times."""

    def told() -> bool:
        return bool(connection.json("GET", "/api/v1/nodes")["items"][0]["offenders"])

    for number in range(times):
        until(lambda: not told())
        time.sleep(random.uniform(0, 5))
        (folder / f"go-{number}").touch()
        seen = until(told)
        yield seen - float((folder / f"began-{number}").read_text())
        (folder / f"leave-{number}").touch()


def main() -> None:
    """Measures and prints the middle and the longest."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trespass")
    parser.add_argument("--times", type=int, default=30)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory(prefix="ty-bench-", dir="/tmp") as name:
        folder = Path(name)
        cards = opened_cards.make(folder, 2)
        os.environ["PYTHONPATH"] = cards.python_path
        with embedded() as stack:
            connection = stack.connect()
            script = JOB.format(folder=folder, card=cards.file(0, 1024))
            stack.submit(connection, command=["sh", "-c", script], resources={"gpus": 0})
            taken = sorted(measure(connection, folder, times))
    print(f"told after {statistics.median(taken):.1f} s (median), {taken[-1]:.1f} s at most, of {times} times")


if __name__ == "__main__":
    main()
