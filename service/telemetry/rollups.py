"""Rollups: points of a series summarised in blocks, stored beside them, so that a chart reads few of either.

A row of `metric_rollups` holds 64 blocks: at level 1 of 16 points each, at level 2 of 1,024, one for each row of level
1. `service.controllers.rollups` writes them once a series has some thousand points more than it has rolled up.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, func, select

from service.db.chunks import chunks
from service.db.models import MetricPoint, MetricRollup
from service.telemetry.blocks import BLOCK, NOTHING, Axis, Blocks, Mask, of_points, taken, to_points
from service.telemetry.series import Integers, Points
from torchyard.numbers import INT64

#: Blocks of a row.
BLOCKS = 64
#: Points of a block at level 1.
LEAST_POINTS = 16
#: Level of single points; levels of rows.
POINTS, FINE, COARSE = 0, 1, 2

#: Every number that a step or a time may have, both ends included; that a line may have; and no number.
ALL, LINES, NONE = (INT64.start, INT64.stop - 1), (0, INT64.stop - 1), (INT64.stop - 1, INT64.start)

POINT = np.dtype(
    [
        *[(name, np.int64) for name in ("series", "seq", "step", "time_us")],
        ("value", np.float64),
        ("special", np.int64),
    ]
)
Rows = NDArray[np.void]
#: Columns of `Rows`.
COLUMNS = (
    MetricPoint.series_id,
    MetricPoint.seq,
    MetricPoint.step,
    MetricPoint.time_us,
    func.coalesce(MetricPoint.value, 0.0),
    MetricPoint.special,
)
_NEXT = (
    select(*COLUMNS)
    .where(MetricPoint.series_id == bindparam("series"), MetricPoint.seq > bindparam("after"))
    .order_by(MetricPoint.seq)
)
_NEXT_SOME = _NEXT.limit(bindparam("most"))
_OF_LINES = _NEXT.where(MetricPoint.seq <= bindparam("last"))
_OF_LEVEL = (
    select(MetricRollup.data)
    .where(MetricRollup.series_id == bindparam("series"), MetricRollup.level == bindparam("level"))
    .order_by(MetricRollup.first_seq)
)
_AFTER = _OF_LEVEL.where(MetricRollup.first_seq > bindparam("after"))
_AMONG = _OF_LEVEL.where(MetricRollup.first_seq.in_(bindparam("firsts", expanding=True)))


def rows(tx: Connection, query: Any, parameters: dict[str, Any] | None = None) -> Rows:
    """Return the rows of a query for `COLUMNS`."""
    # The driver's own tuples: a million of SQLAlchemy's rows take several seconds.
    with tx.execute(query, parameters or {}) as result:
        return np.fromiter(cast("Iterable[Any]", result.cursor), POINT)


def single(points: Rows) -> Blocks:
    """Return a block for each point of a series."""
    return of_points(Points(points["step"], points["time_us"], points["value"], points["special"]), points["seq"])


def next_points(tx: Connection, series: int, seq: int, most: int) -> Rows:
    """Return the points of a series that follow a line, so many at most."""
    return rows(tx, _NEXT_SOME, {"series": series, "after": seq, "most": most})


def after(tx: Connection, series: int, level: int, seq: int) -> list[Blocks]:
    """Return the rows of blocks of a series at a level that begin after a line."""
    found = tx.scalars(_AFTER, {"series": series, "level": level, "after": seq}).all()
    return [np.frombuffer(data, BLOCK) for data in found]


@dataclass(frozen=True, kw_only=True)
class Within:
    """Bounds of points, both ends included: of their lines, steps and times (µs)."""

    seq: tuple[int, int] = LINES
    step: tuple[int, int] = ALL
    time_us: tuple[int, int] = ALL

    def partly(self, blocks: Blocks) -> Mask:
        """Tell which blocks may hold a point within the bounds."""
        found = np.ones(len(blocks), np.bool_)
        for name in ("seq", "step", "time_us"):
            low, high = getattr(self, name)
            found &= (blocks[f"last_{name}"] >= low) & (blocks[f"first_{name}"] <= high)
        return found

    def wholly(self, blocks: Blocks) -> Mask:
        """Tell which blocks hold no other points."""
        found = np.ones(len(blocks), np.bool_)
        for name in ("seq", "step", "time_us"):
            low, high = getattr(self, name)
            found &= (blocks[f"first_{name}"] >= low) & (blocks[f"last_{name}"] <= high)
        return found


@dataclass(frozen=True, kw_only=True)
class _RolledSeries:
    """The part of a stored series that is within bounds."""

    tx: Connection
    series: int
    within: Within

    def finer(self, level: int, blocks: Blocks) -> Blocks:
        """Return what is within the bounds of blocks of a level, one level below."""
        firsts, at = np.unique(blocks["first_seq"], return_index=True)
        found = self._rows(firsts.tolist()) if level == COARSE else self._points(firsts, blocks["last_seq"][at])
        return found[self.within.partly(found)]

    def _rows(self, firsts: Sequence[int]) -> Blocks:
        key = {"series": self.series, "level": FINE}
        some = [self.tx.scalars(_AMONG, {**key, "firsts": each}).all() for each in chunks(firsts)]
        return np.frombuffer(b"".join(data for found in some for data in found), BLOCK)

    def _points(self, firsts: Integers, lasts: Integers) -> Blocks:
        found = [
            rows(self.tx, _OF_LINES, {"series": self.series, "after": first - 1, "last": last})
            for first, last in _runs(firsts, lasts)
        ]
        return single(np.concatenate(found))


def _runs(firsts: Integers, lasts: Integers) -> Iterable[tuple[int, int]]:
    """Return the first and the last line of blocks that follow one another, so that they are read at once."""
    ends = np.flatnonzero(firsts[1:] != lasts[:-1] + 1)
    starts = np.append(0, ends + 1)
    return zip(firsts[starts].tolist(), lasts[np.append(ends, len(lasts) - 1)].tolist(), strict=True)


class SeriesBlocks:
    """The points of a series within bounds, in blocks that are as large as may be until they are refined."""

    def __init__(self, levels: Sequence[Blocks], source: _RolledSeries | None = None) -> None:
        """Take over the blocks of each level, from single points on, which together hold every point of the series that
        is within the bounds of the source; without one they are single points, and those that are meant.
        """
        self._levels = list(levels)
        self._source = source
        #: The last line that was looked at.
        self.last_seq = max(int(blocks["last_seq"].max(initial=-1)) for blocks in levels)
        if source is not None:
            within = source.within
            self._levels = [blocks[within.partly(blocks)] for blocks in levels]
            self.refine(lambda blocks: ~within.wholly(blocks))

    @classmethod
    def of(cls, points: Points) -> Self:
        """Return the blocks of points that are all known."""
        return cls([of_points(points)])

    def __len__(self) -> int:
        """Return the number of points."""
        return sum(int(blocks["count"].sum(dtype=np.int64)) for blocks in self._levels)

    def ends(self, axis: Axis) -> tuple[float, float]:
        """Return where on an axis the points begin and end; there must be some."""
        ends = [axis.ends(blocks) for blocks in self._levels if len(blocks)]
        return float(min(first.min() for first, _ in ends)), float(max(last.max() for _, last in ends))

    def blocks(self, axis: Axis, width: float) -> Blocks:
        """Return the points in blocks that are no wider than given, in the order of their lines."""

        def wide(blocks: Blocks) -> Mask:
            first, last = axis.ends(blocks)
            return (last - first) > width

        self.refine(wide)
        return self._all()

    def points(self) -> Points:
        """Return the points, in the order of their lines."""
        self.refine(lambda blocks: np.ones(len(blocks), np.bool_))
        return to_points(self._all())

    @property
    def last_step(self) -> int:
        """The largest step; there must be a point."""
        return max(int(blocks["last_step"].max(initial=ALL[0])) for blocks in self._levels)

    def last_point(self) -> Points:
        """Return the point of the largest step, of several the last; there must be one."""
        step = self.last_step

        def last(blocks: Blocks) -> Mask:
            newest = max(int(each["first_seq"][each["last_step"] == step].max(initial=-1)) for each in self._levels)
            found: Mask = (blocks["last_step"] == step) & (blocks["first_seq"] == newest)
            return found

        self.refine(last)
        points = self._levels[POINTS]
        points = points[points["last_step"] == step]
        return to_points(points[np.argsort(points["first_seq"], kind="stable")][-1:])

    def _all(self) -> Blocks:
        # Large blocks come first, as a rule: what follows on them is not rolled up so far.
        blocks = np.concatenate(self._levels[::-1])
        return taken(blocks, np.argsort(blocks["first_seq"], kind="stable"))

    def refine(self, chosen: Callable[[Blocks], Mask]) -> None:
        """Replace the chosen blocks, and what is chosen of those that come instead, down to single points."""
        if self._source is None:
            return
        for level in (COARSE, FINE):
            blocks = self._levels[level]
            replaced = np.isin(blocks["first_seq"], blocks["first_seq"][chosen(blocks)])
            if replaced.any():
                self._levels[level] = blocks[~replaced]
                finer = self._source.finer(level, blocks[replaced])
                self._levels[level - 1] = np.concatenate([finer, self._levels[level - 1]])


def read(tx: Connection, series: int, rolled_seq: int, within: Within) -> SeriesBlocks:
    """Return the points of a series within bounds; up to line `rolled_seq` they are rolled up."""
    coarse = _joined(after(tx, series, COARSE, -1))
    fine = _joined(after(tx, series, FINE, int(coarse["last_seq"].max(initial=-1))))
    behind = {"series": series, "after": max(rolled_seq, within.seq[0] - 1), "last": within.seq[1]}
    rest = single(rows(tx, _OF_LINES, behind))
    return SeriesBlocks([rest, fine, coarse], _RolledSeries(tx=tx, series=series, within=within))


def _joined(rows: Sequence[Blocks]) -> Blocks:
    return np.concatenate([NOTHING, *rows])
