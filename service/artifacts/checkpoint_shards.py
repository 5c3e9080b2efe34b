"""Shards of a checkpoint, one of each node: it is stored once all of them are here.

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
class CheckpointShard:
    """The files of a checkpoint that one of `of` nodes has written."""

    of: int
    node_rank: int

    @property
    def owner(self) -> int | None:
        """Return the node rank as it is stored with the files; None where there is one node."""
        return None if self.of == 1 else self.node_rank


def is_new(tx: Connection, checkpoint_id: str, shard: CheckpointShard) -> bool:
    """Return true if the files of the shard have never been listed."""
    owner = CheckpointFile.node_rank.is_not_distinct_from(shard.owner)
    query = select(CheckpointFile.path).where(CheckpointFile.checkpoint_id == checkpoint_id, owner).limit(1)
    return tx.scalar(query) is None


def set_files(tx: Connection, checkpoint_id: str, message: CheckpointReport, shard: CheckpointShard) -> None:
    """List the shard's files in place of those that it listed before: the hashed report is what will be restored."""
    others = _others(tx, checkpoint_id, shard)
    rows = [
        {"checkpoint_id": checkpoint_id, "node_rank": shard.owner, **file.model_dump()}
        for file in message.files
        if others.get(file.path, shard.of) > shard.node_rank
    ]
    of_checkpoint = CheckpointFile.checkpoint_id == checkpoint_id
    mine = CheckpointFile.node_rank.is_not_distinct_from(shard.owner)
    tx.execute(delete(CheckpointFile).where(of_checkpoint, mine))
    taken = [row["path"] for row in rows if row["path"] in others]
    if taken:
        tx.execute(delete(CheckpointFile).where(of_checkpoint, CheckpointFile.path.in_(taken)))
    if rows:
        tx.execute(insert(CheckpointFile), rows)
    if shard.of > 1:
        _sum_up(tx, checkpoint_id, message, shard)


def _others(tx: Connection, checkpoint_id: str, shard: CheckpointShard) -> dict[str, int]:
    if shard.of == 1:
        return {}
    query = select(CheckpointFile.path, CheckpointFile.node_rank).where(CheckpointFile.checkpoint_id == checkpoint_id)
    return {row.path: row.node_rank for row in tx.execute(query) if row.node_rank != shard.node_rank}


def _sum_up(tx: Connection, checkpoint_id: str, message: CheckpointReport, shard: CheckpointShard) -> None:
    """Set the checkpoint's size to that of all shards, and its metrics to those that rank 0 gave."""
    size = select(func.sum(CheckpointFile.size)).where(CheckpointFile.checkpoint_id == checkpoint_id)
    values: dict[str, Any] = {"size": tx.scalar(size) or 0}
    if shard.node_rank == 0:
        values["metrics"] = metrics_of(message)
    tx.execute(update(Checkpoint).where(Checkpoint.id == checkpoint_id).values(**values))


def all_stored(tx: Connection, checkpoint_id: str, shard: CheckpointShard) -> bool:
    """Record that the shard is in the store; return true if all of them are."""
    if shard.of == 1:
        return True
    row = {"checkpoint_id": checkpoint_id, "node_rank": shard.node_rank}
    tx.execute(upsert.insert(tx, CheckpointPart).values(**row).on_conflict_do_nothing())
    stored = select(func.count()).select_from(CheckpointPart).where(CheckpointPart.checkpoint_id == checkpoint_id)
    return tx.scalar(stored) == shard.of


def metrics_of(message: CheckpointReport) -> dict[str, api.Number]:
    """Return the metrics as JSON can hold them: ``nan``, ``inf`` and ``-inf`` as words."""
    return {name: _storable(value) for name, value in message.metrics.items()}


def _storable(value: api.Number) -> api.Number:
    if isinstance(value, str) or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
