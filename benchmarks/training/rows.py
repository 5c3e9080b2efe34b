"""From one run's result to figures."""

from collections.abc import Iterator
from typing import Any

from benchmarks.figure import Figure

#: Name -> (unit, target, what it must be below).
TARGETS: dict[str, tuple[str, str, float]] = {
    "overhead": ("%", "< 2", 2.0),
    "stall": ("% of a synchronous save", "< 10", 10.0),
}


def figures(name: str, ranks: int, result: dict[str, Any]) -> Iterator[Figure]:
    """Yield what a benchmark has measured with so many ranks."""
    for key, value in result.items():
        unit, target, limit = TARGETS.get(key, ("ms", "", float("inf")))
        title = f"{name}: {key.replace('_', ' ')}, {ranks} rank{'s' if ranks > 1 else ''}"
        yield Figure(name=title, value=float(value), unit=unit, target=target, met=value < limit)
