"""All points of a job, one a row."""

import csv
from collections.abc import Iterable, Iterator
from typing import IO, Final, NamedTuple

from torchyard.api import Metrics
from torchyard.client.client import Client

#: Characters of names in one request.
MAX_NAMES: Final = 1000


class ExportedPoint(NamedTuple):
    """A point of a series; `time` is in seconds since 1970."""

    name: str
    rank: int
    step: int
    time: float
    value: float


def read(client: Client, job: str, names: Iterable[str] = ()) -> Iterator[ExportedPoint]:
    """Every point of a job's series, one series at a time, none left out."""
    wanted = list(names) or sorted({each.name for each in client.metrics(job, max_points=10).series})
    for some in _asked(wanted):
        # A comma parts names in a request.
        metrics = client.metrics(job, names=[] if any("," in name for name in some) else some, all_points=True)
        yield from (row for row in rows_of(metrics) if row.name in some)


def _asked(names: Iterable[str]) -> Iterator[list[str]]:
    """Names for one request each: few enough for its address, and those with a comma alone."""
    some: list[str] = []
    for name in names:
        if some and ("," in name or "," in some[0] or sum(map(len, some)) + len(name) > MAX_NAMES):
            yield some
            some = []
        some.append(name)
    if some:
        yield some


def rows_of(metrics: Metrics) -> Iterator[ExportedPoint]:
    """The points of an answer."""
    for series in metrics.series:
        for step, time_s, value in series.points:
            yield ExportedPoint(series.name, series.rank, step, time_s, float(value))


def write_csv(rows: Iterable[ExportedPoint], file: IO[str]) -> None:
    """Write the rows with their names on top; numbers so that they are read back as they were."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(ExportedPoint._fields)
    writer.writerows((*row[:3], repr(row.time), repr(row.value)) for row in rows)
