"""From several runs to rows of the table."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

#: Name -> (unit, target, whether a median meets it).
TARGETS: dict[str, tuple[str, str, float | None]] = {
    "overhead": ("%", "< 2", 2.0),
    "stall": ("% of a synchronous save", "< 10", 10.0),
}


def summarise(name: str, ranks: int, results: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """A row for each figure of a benchmark."""
    for key in results[0]:
        values = [float(result[key]) for result in results]
        unit, target, limit = TARGETS.get(key, ("ms", "", None))
        median = statistics.median(values)
        met = "" if limit is None else "yes" if median < limit else "NO"
        figure = f"{name}: {key.replace('_', ' ')}, {ranks} rank{'s' if ranks > 1 else ''}"
        yield [figure, f"{median:,.2f} {unit}", f"{min(values):,.2f} to {max(values):,.2f}", target, met]
