"""Telemetry of a node and of the attempts on it."""

import math
from typing import Any

from service.attempts import memory
from service.attempts.memory import Memory
from service.db.engine import Database
from service.db.models import Sample
from service.db.unit_of_work import unit_of
from service.db.upsert import insert
from service.errors import ProblemError
from torchyard import wire
from torchyard.ids import AttemptId

#: A node's clock may be so far ahead. What is from beyond would be its newest sample until then, and is passed over.
AHEAD_US = 24 * 3600 * 1_000_000


def sample(db: Database, known: Memory, node: str, batch: wire.SampleBatch, now: int) -> None:
    """Store samples; a moment sent twice is stored once. What names an attempt of another node, or is from the future,
    is passed over.
    """
    past = [entry for entry in batch.samples if 0 <= entry.time_us < now + AHEAD_US]
    rows = [row for entry in past if (row := _row(db, known, node, entry)) is not None]
    if not rows:
        return
    with db.write() as tx:
        tx.execute(insert(tx, Sample).on_conflict_do_nothing(), rows)
        unit_of(tx).tell_node(node)


def _row(db: Database, known: Memory, node: str, entry: wire.Sample) -> dict[str, Any] | None:
    values = {name: value for name, value in entry.values.items() if math.isfinite(value)}
    if not values or not _is_here(db, known, node, entry.attempt):
        return None
    return {"node": node, "attempt_id": entry.attempt or "", "time_us": entry.time_us, "values": values}


def _is_here(db: Database, known: Memory, node: str, attempt_id: AttemptId | None) -> bool:
    if attempt_id is None:
        return True
    try:
        memory.of_node(db, known, attempt_id, node)
    except ProblemError:
        return False
    return True
