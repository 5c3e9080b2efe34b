"""What each of several nodes has of a checkpoint: its files count as one, and it is stored once all of them are here.

A path that two nodes have written is the lower node rank's: name files that differ by rank.
"""

import math
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from service.db import upsert
from service.db.models import Checkpoint, CheckpointFile, CheckpointPart
from torchyard import api
from torchyard.wire import CheckpointReport


@dataclass(frozen=True, kw_only=True)
class Part:
    """Which part of how many."""

    of: int
    node_rank: int

    @property
    def owner(self) -> int | None:
        """What is stored with the files."""
        return None if self.of == 1 else self.node_rank


def is_new(tx: Connection, checkpoint_id: str, part: Part) -> bool:
    """Whether its files have never been listed."""
    owner = CheckpointFile.node_rank.is_not_distinct_from(part.owner)
    query = select(CheckpointFile.path).where(CheckpointFile.checkpoint_id == checkpoint_id, owner).limit(1)
    return tx.scalar(query) is None


def set_files(tx: Connection, checkpoint_id: str, message: CheckpointReport, part: Part) -> None:
    """Lists the part's files in place of what it listed before: the hashed report is what will be restored."""
    others = _others(tx, checkpoint_id, part)
    rows = [
        {"checkpoint_id": checkpoint_id, "node_rank": part.owner, **file.model_dump()}
        for file in message.files
        if others.get(file.path, part.of) > part.node_rank
    ]
    of_checkpoint = CheckpointFile.checkpoint_id == checkpoint_id
    mine = CheckpointFile.node_rank.is_not_distinct_from(part.owner)
    tx.execute(delete(CheckpointFile).where(of_checkpoint, mine))
    taken = [row["path"] for row in rows if row["path"] in others]
    if taken:
        tx.execute(delete(CheckpointFile).where(of_checkpoint, CheckpointFile.path.in_(taken)))
    if rows:
        tx.execute(insert(CheckpointFile), rows)
    if part.of > 1:
        _sum_up(tx, checkpoint_id, message, part)


def _others(tx: Connection, checkpoint_id: str, part: Part) -> dict[str, int]:
    if part.of == 1:
        return {}
    query = select(CheckpointFile.path, CheckpointFile.node_rank).where(CheckpointFile.checkpoint_id == checkpoint_id)
    return {row.path: row.node_rank for row in tx.execute(query) if row.node_rank != part.node_rank}


def _sum_up(tx: Connection, checkpoint_id: str, message: CheckpointReport, part: Part) -> None:
    """The checkpoint's size is that of all parts; its metrics are those that rank 0 gave."""
    size = select(func.sum(CheckpointFile.size)).where(CheckpointFile.checkpoint_id == checkpoint_id)
    values: dict[str, Any] = {"size": tx.scalar(size) or 0}
    if part.node_rank == 0:
        values["metrics"] = metrics_of(message)
    tx.execute(update(Checkpoint).where(Checkpoint.id == checkpoint_id).values(**values))


def all_stored(tx: Connection, checkpoint_id: str, part: Part) -> bool:
    """Takes note that the part is in the store; whether all are."""
    if part.of == 1:
        return True
    row = {"checkpoint_id": checkpoint_id, "node_rank": part.node_rank}
    tx.execute(upsert.insert(tx, CheckpointPart).values(**row).on_conflict_do_nothing())
    stored = select(func.count()).select_from(CheckpointPart).where(CheckpointPart.checkpoint_id == checkpoint_id)
    return tx.scalar(stored) == part.of


def metrics_of(message: CheckpointReport) -> dict[str, api.Number]:
    """The metrics as JSON has words for them."""
    return {name: _storable(value) for name, value in message.metrics.items()}


def _storable(value: api.Number) -> api.Number:
    if isinstance(value, str) or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
