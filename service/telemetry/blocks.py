"""Blocks: what a chart needs to know of consecutive points, be it thousands or a single one."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from service.telemetry.series import Floats, Integers, Points
from torchyard import api

#: The points of a block of one kind (`special`: 0 finite, else a code of `service.db.special_values`): a block that has
#: numbers and NaNs has two rows. The bounds of steps and times are each their own: the least step and the least time
#: need not be of one point. The lines of a block, `first_seq` to `last_seq`, are those of all its kinds, and those
#: after the block before it. `least`, `most` and `mean` are 0 where there is no number.
BLOCK = np.dtype(
    [
        ("first_seq", "<i8"),
        ("last_seq", "<i8"),
        ("special", "u1"),
        ("count", "<u4"),
        *[(name, "<i8") for name in ("first_step", "last_step", "first_time_us", "last_time_us")],
        *[(name, "<f8") for name in ("least", "most", "mean")],
    ]
)
Blocks = NDArray[np.void]
NOTHING = np.empty(0, BLOCK)
Mask = NDArray[np.bool_]

_LEAST, _MOST = ("first_seq", "first_step", "first_time_us"), ("last_seq", "last_step", "last_time_us")


class Axis(StrEnum):
    """The unit of a range of points."""

    STEP = "step"
    TIME = "time"

    @property
    def columns(self) -> tuple[str, str]:
        """Columns of a block that say where on the axis it begins and ends."""
        return ("first_step", "last_step") if self is Axis.STEP else ("first_time_us", "last_time_us")

    @property
    def scale(self) -> int:
        """Units of the columns in one of the axis."""
        return 1 if self is Axis.STEP else 1_000_000

    def ends(self, blocks: Blocks) -> tuple[Floats, Floats]:
        """Return where on the axis each block begins and ends."""
        first, last = (blocks[name].astype(np.float64) / self.scale for name in self.columns)
        return first, last

    def middles(self, blocks: Blocks, origin: int = 0) -> Floats:
        """Return where on the axis the middle of each block is, from an origin in what the columns count."""
        first, last = ((blocks[name] - origin).astype(np.float64) for name in self.columns)
        return (first / 2 + last / 2) / self.scale


def of_points(points: Points, seqs: Integers | None = None) -> Blocks:
    """Return a block for each point."""
    blocks = np.zeros(len(points), BLOCK)
    blocks["count"] = 1
    blocks["special"] = points.special
    for name, column in (("step", points.steps), ("time_us", points.times_us), ("seq", seqs)):
        if column is not None:
            blocks[f"first_{name}"] = blocks[f"last_{name}"] = column
    for name in ("least", "most", "mean"):
        blocks[name] = points.values
    return blocks


def to_points(blocks: Blocks) -> Points:
    """Return the points of blocks of one kind each: of numbers if each is a single point, else the first of each."""
    special = blocks["special"].astype(np.int64)
    return Points(blocks["first_step"], blocks["first_time_us"], blocks["mean"], special)


def in_order(blocks: Blocks) -> Blocks:
    """Return blocks in order of steps; where steps are equal, in the order that they are in."""
    return taken(blocks, np.argsort(blocks["first_step"], kind="stable"))


def taken(blocks: Blocks, order: NDArray[np.intp]) -> Blocks:
    """Return blocks in an order. Mostly they are in it, and to copy them takes longest of all."""
    return blocks[order] if (np.diff(order) != 1).any() else blocks


def merged(blocks: Blocks, groups: Integers) -> tuple[Blocks, Integers]:
    """Return one block for each kind of value in each group, in order of groups, and the group of each."""
    order = np.lexsort((blocks["special"], groups))
    blocks, groups = taken(blocks, order), groups[order]
    kinds = blocks["special"]
    new = np.ones(len(blocks), np.bool_)
    new[1:] = (groups[1:] != groups[:-1]) | (kinds[1:] != kinds[:-1])
    starts = np.flatnonzero(new)
    made = np.empty(len(starts), BLOCK)
    if len(starts):
        made["special"] = kinds[starts]
        for name in (*_LEAST, "least"):
            made[name] = np.minimum.reduceat(blocks[name], starts)
        for name in (*_MOST, "most"):
            made[name] = np.maximum.reduceat(blocks[name], starts)
        counts = blocks["count"].astype(np.float64)
        totals = np.add.reduceat(counts, starts)
        made["count"] = totals
        # Divided first: a sum of large values may have no number. Thirds of the largest number add up to more than it.
        with np.errstate(over="ignore"):
            shares = blocks["mean"] / np.repeat(totals, np.diff(starts, append=len(blocks))) * counts
            made["mean"] = np.clip(np.add.reduceat(shares, starts), made["least"], made["most"])
    return made, groups[starts]


def rolled_up(blocks: Blocks, groups: Integers, after: int) -> tuple[Blocks, Integers]:
    """Return one block for each group of blocks in order of lines (each with the lines between it and the one before,
    of which line `after` is the last), and the group of each.
    """
    made, groups = merged(blocks, groups)
    _, starts, place = np.unique(groups, return_index=True, return_inverse=True)
    lasts = np.maximum.reduceat(made["last_seq"], starts)
    made["first_seq"] = np.append(after, lasts[:-1])[place] + 1
    made["last_seq"] = lasts[place]
    return made, groups


def bucketed(blocks: Blocks, axis: Axis, edges: tuple[float, float], count: int) -> tuple[api.Buckets, Points]:
    """Return at most `count` buckets of equal width between the edges, without the empty ones, and the values that are
    no numbers: of each kind the first in a bucket.

    A block lies in the bucket of its middle; the edges are those of all blocks.
    """
    low, high = edges
    width = (high - low) / count or 1.0
    numbers = np.clip((axis.middles(blocks) - low) / width, 0, count - 1).astype(np.int64)
    buckets, _ = merged(blocks, numbers)
    special = buckets["special"] != 0
    return _resource(buckets[~special]), to_points(in_order(buckets[special]))


def _resource(buckets: Blocks) -> api.Buckets:
    return api.Buckets.model_construct(
        first_step=buckets["first_step"].tolist(),
        last_step=buckets["last_step"].tolist(),
        first_time=(buckets["first_time_us"] / 1e6).tolist(),
        last_time=(buckets["last_time_us"] / 1e6).tolist(),
        count=buckets["count"].tolist(),
        min=buckets["least"].tolist(),
        mean=buckets["mean"].tolist(),
        max=buckets["most"].tolist(),
    )
