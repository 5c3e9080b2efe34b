"""`make bench`: the figures of the control plane on the embedded stack, several runs, medians."""

import argparse
from collections.abc import Callable, Iterator

from benchmarks import figures, results
from benchmarks.figure import Figure, summarise
from benchmarks.stack import Stack, embedded


def _measure(benchmark: Callable[[Stack], Iterator[Figure]], runs: int) -> Iterator[Figure]:
    for _ in range(runs):
        with embedded() as stack:
            yield from benchmark(stack)


def main() -> None:
    """Runs the chosen benchmarks and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="names of benchmarks; nothing is written then")
    options = parser.parse_args()
    chosen = [each for each in figures.ALL if not options.only or each.__name__ in options.only]
    rows = [row for each in chosen for row in summarise(_measure(each, options.runs))]
    results.report("control plane", rows, whole=not options.only)


if __name__ == "__main__":
    main()
