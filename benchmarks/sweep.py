"""``python -m benchmarks.sweep``: twenty trials of the digits recipe on two slots, started cold and warm in turn."""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import results
from benchmarks.figure import Figure, summarise
from benchmarks.first_step import until_warm
from benchmarks.http import KeepAliveConnection
from benchmarks.stack import Stack, embedded

TRIALS = 20
RECIPE = {"model": "digits_cnn", "data": "digits", "optim": "adam", "strategy": "single", "epochs": 1, "batch_size": 64}


def sweep(stack: Stack) -> Iterator[Figure]:
    """Seconds from the sweep's submission until its last trial has ended."""
    connection = stack.connect()
    with TemporaryDirectory(prefix="ty-bench-", dir="/tmp") as folder:
        until_warm(stack, connection, Path(folder))
    cold = _run(connection, warm=False)
    warm = _run(connection, warm=True)
    yield Figure(name=f"sweep of {TRIALS} trials, cold", value=cold, unit="s")
    yield Figure(
        name=f"sweep of {TRIALS} trials, warm", value=warm, unit="s", target="<= 0.50 x", met=warm <= cold / 2,
        baseline=cold, against="cold",
    )  # fmt: skip


def _run(connection: KeepAliveConnection, *, warm: bool) -> float:
    rates = [0.001 * number for number in range(1, TRIALS + 1)]
    spec = {
        "name": "digits",
        "recipe": RECIPE,
        "resources": {"gpus": 1},
        "env": {"OMP_NUM_THREADS": "1"},
        "warm_start": warm,
        "sweep": {"parameters": {"lr": rates}},
    }
    begin = time.time()
    group = str(connection.json("POST", "/api/v1/jobs", spec)["id"])
    while True:
        counts = connection.json("GET", f"/api/v1/groups/{group}")["states"]
        if sum(counts.get(state, 0) for state in ("succeeded", "failed", "cancelled")) == TRIALS:
            break
        time.sleep(0.1)
    if counts.get("succeeded") != TRIALS:
        raise RuntimeError(f"trials have not succeeded: {counts}")
    return time.time() - begin


def main() -> None:
    """Runs it and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep")
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for _ in range(options.runs):
        with embedded() as stack:
            rows += sweep(stack)
    results.report("sweep", [*summarise(rows)])


if __name__ == "__main__":
    main()
