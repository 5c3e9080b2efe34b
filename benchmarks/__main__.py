"""`make bench`: the figures of the control plane on the embedded stack, several runs, medians."""

import argparse
import statistics
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from benchmarks import figures
from benchmarks.figure import Figure
from benchmarks.stack import Stack, embedded


def _measure(benchmark: Callable[[Stack], Iterator[Figure]], runs: int) -> Iterator[tuple[Figure, list[float]]]:
    rows: dict[str, list[Figure]] = {}
    for _ in range(runs):
        with embedded() as stack:
            for figure in benchmark(stack):
                rows.setdefault(figure.name, []).append(figure)
    for measured in rows.values():
        middle = sorted(measured, key=lambda figure: figure.value)[len(measured) // 2]
        yield middle, [figure.value for figure in measured]


def _row(figure: Figure, values: list[float]) -> list[str]:
    spread = f"{min(values):,.1f} to {max(values):,.1f}"
    ratio = f"{figure.value / figure.baseline:,.2f} x {figure.against}" if figure.baseline else ""
    verdict = "" if not figure.target else "yes" if figure.met else "NO"
    median = statistics.median(values)
    return [figure.name, f"{median:,.1f} {figure.unit}", spread, figure.target, verdict, ratio]


def main() -> None:
    """Runs the chosen benchmarks and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="names of benchmarks")
    options = parser.parse_args()
    table = Table("figure", "median", "range", "target", "met", "against the same run's")
    for benchmark in figures.ALL:
        if not options.only or benchmark.__name__ in options.only:
            for figure, values in _measure(benchmark, options.runs):
                table.add_row(*_row(figure, values))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
