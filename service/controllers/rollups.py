"""Roll up the points of long series, so that charts need not read them."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, case, func, insert, select, update

from service.context import Context
from service.db.engine import Database
from service.db.models import LONG_UNROLLED, Job, MetricRollup, MetricSeries
from service.infra.threads import call_all
from service.telemetry import rollups
from service.telemetry.blocks import Blocks, rolled_up
from service.telemetry.rollups import COARSE, FINE
from service.telemetry.series import Integers

#: Points that are rolled up in one transaction: some megabytes of memory, a tenth of a second of the interpreter.
AT_ONCE = 65_536


_LONG = select(MetricSeries.id).where(LONG_UNROLLED).limit(100)
_SERIES = (
    select(MetricSeries.rolled_seq, MetricSeries.unrolled, Job.discarded_us)
    .join(Job, Job.id == MetricSeries.job_id)
    .where(MetricSeries.id == bindparam("series"))
)
_DONE = bindparam("done", type_=MetricSeries.unrolled.type)
#: Only if nobody has rolled up the same meanwhile: several services may share a database.
_MOVE = (
    update(MetricSeries)
    .where(MetricSeries.id == bindparam("series"), MetricSeries.rolled_seq == bindparam("before"))
    .values(
        rolled_seq=bindparam("last"),
        unrolled=case((MetricSeries.unrolled > _DONE, MetricSeries.unrolled - _DONE), else_=0),
    )
)
_OF_LEVEL = (MetricRollup.series_id == bindparam("series"), MetricRollup.level == bindparam("level"))
_LAST_SEQ = select(func.coalesce(func.max(MetricRollup.last_seq), -1)).where(*_OF_LEVEL)
_ROWS_AFTER = select(func.count()).where(*_OF_LEVEL, MetricRollup.first_seq > bindparam("after"))


class RollUps:
    """One round rolls up some of the points that wait, so that requests and other series have their turn."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def run(self) -> None:
        """Roll up points of series that have many; have another round follow while there are such series."""
        left = AT_ONCE

        def roll_up_some(series: int) -> None:
            nonlocal left
            if left > 0:
                left -= roll_up(self._ctx.db, series)

        with self._ctx.db.read() as tx:
            long = list(tx.scalars(_LONG))
        call_all(partial(roll_up_some, series) for series in long)
        if long:
            self._ctx.stored_points.look.set()


def roll_up(db: Database, series: int, most: int = AT_ONCE) -> int:
    """Roll up what a series has beyond its rollups, so many points at most; return how many were read."""
    with db.read() as tx:
        rolled_seq, unrolled, discarded_us = tx.execute(_SERIES, {"series": series}).one()
        found = rollups.next_points(tx, series, rolled_seq, most if discarded_us is None else 0)
    a_row = rollups.LEAST_POINTS * rollups.BLOCKS
    whole = len(found) // a_row * a_row
    # How many points there are is known but roughly until all are read; those of a discarded job do not matter.
    done = whole if len(found) == most else unrolled - (len(found) - whole)
    last = int(found["seq"][whole - 1]) if whole else rolled_seq
    blocks = rolled_up(rollups.single(found[:whole]), np.arange(whole) // rollups.LEAST_POINTS, rolled_seq)
    with db.write() as tx:
        moved = tx.execute(_MOVE, {"series": series, "before": rolled_seq, "last": last, "done": done})
        if moved.rowcount and whole:
            _insert(tx, series, FINE, *blocks)
            _roll_up_rows(tx, series)
    return len(found)


def _roll_up_rows(tx: Connection, series: int) -> None:
    """Roll up the rows of the fine level, once there are enough of them for a row of the coarse one."""
    last = tx.scalar(_LAST_SEQ, {"series": series, "level": COARSE}) or 0
    while (tx.scalar(_ROWS_AFTER, {"series": series, "level": FINE, "after": last}) or 0) >= rollups.BLOCKS:
        rows = rollups.after(tx, series, FINE, last)[: rollups.BLOCKS]
        groups = np.repeat(np.arange(rollups.BLOCKS), [len(row) for row in rows])
        blocks, groups = rolled_up(np.concatenate(rows), groups, last)
        _insert(tx, series, COARSE, blocks, groups)
        last = int(blocks["last_seq"][-1])


def _insert(tx: Connection, series: int, level: int, blocks: Blocks, numbers: Integers) -> None:
    """Insert rows of blocks, which are numbered from 0 on."""
    tx.execute(insert(MetricRollup), [{"series_id": series, "level": level, **row} for row in _rows(blocks, numbers)])


def _rows(blocks: Blocks, numbers: Integers) -> Iterator[dict[str, Any]]:
    for row in np.split(blocks, np.flatnonzero(np.diff(numbers // rollups.BLOCKS)) + 1):
        yield {"first_seq": int(row["first_seq"][0]), "last_seq": int(row["last_seq"][-1]), "data": row.tobytes()}
