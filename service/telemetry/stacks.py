"""Stacks of running attempts: stored as nodes send them, told in words, and shown."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, select

from service import lifecycle
from service.db.engine import Database
from service.db.models import Attempt, Member, Stacks
from service.db.records.record import Record
from service.db.upsert import insert
from service.errors import TooLargeError
from service.infra.times import moment
from torchyard import api
from torchyard.ids import AttemptId, JobId
from torchyard.wire import MAX_DUMP, ProcessStack, StackDump

#: Dumps of an attempt and node that are kept.
KEEP = 5
#: Ranks that are named one by one in words.
MAX_NAMED = 8


@dataclass(frozen=True, slots=True)
class _StoredStacks(Record):
    """Stacks that a member of an attempt, by the attempt's number, has sent."""

    number: int
    node: str
    node_rank: int
    serial: int
    at_us: int
    dump: StackDump


@dataclass(frozen=True, slots=True)
class _StoredDump(Record):
    """A dump alone."""

    dump: StackDump


def store(tx: Connection, attempt_id: AttemptId, node: str, dump: StackDump, now: int) -> None:
    """Store the stacks of a node's part, and tell of them once all parts have sent theirs.

    What comes again, or was not asked for, changes nothing.
    """
    if len(dump.model_dump_json().encode()) > MAX_DUMP:
        raise TooLargeError(MAX_DUMP)
    job, attempt = lifecycle.lock_attempt(tx, attempt_id)
    if not 0 < dump.serial <= attempt.dump_serial:
        return
    part = (Member.attempt_id == attempt_id, Member.node == node)
    node_rank = tx.scalars(select(Member.node_rank).where(*part)).one()
    key = {"attempt_id": attempt_id, "node_rank": node_rank, "serial": dump.serial}
    row = insert(tx, Stacks).values(**key, at_us=now, dump=dump.model_dump(mode="json"))
    new = tx.scalar(row.on_conflict_do_nothing().returning(Stacks.serial)) is not None
    old = (Stacks.attempt_id == attempt_id, Stacks.node_rank == node_rank, Stacks.serial <= dump.serial - KEEP)
    tx.execute(delete(Stacks).where(*old))
    if new and dump.serial == attempt.dump_serial and complete(tx, attempt_id, dump.serial):
        processes = _processes(tx, attempt_id, dump.serial)
        words, data = summary(processes) or "nothing of it runs", {"groups": groups(processes)}
        lifecycle.insert_event(tx, job.id, "stacks", words, data=data, now=now)


def complete(tx: Connection, attempt_id: AttemptId, serial: int) -> bool:
    """Tell if all parts of the attempt that have not ended have sent the stacks of this serial."""
    sent = select(Stacks.node_rank).where(Stacks.attempt_id == attempt_id, Stacks.serial == serial)
    missing = select(Member.node_rank).where(
        Member.attempt_id == attempt_id, Member.ended_us.is_(None), Member.node_rank.not_in(sent)
    )
    return tx.execute(missing.limit(1)).first() is None


def describe(tx: Connection, attempt_id: AttemptId, serial: int) -> str:
    """Tell in words what the ranks did; empty if no stacks have come."""
    return summary(_processes(tx, attempt_id, serial))


def _processes(tx: Connection, attempt_id: AttemptId, serial: int) -> list[ProcessStack]:
    query = select(Stacks.dump).where(Stacks.attempt_id == attempt_id, Stacks.serial == serial)
    stored = _StoredDump.all(tx.execute(query.order_by(Stacks.node_rank)))
    return [process for each in stored for process in each.dump.processes]


def groups(processes: Iterable[ProcessStack]) -> list[dict[str, Any]]:
    """Return what the summary is made of: ranks that do the same, and what they do."""
    return [_group(alike) for alike in _alike(processes).values()]


def _alike(processes: Iterable[ProcessStack]) -> dict[tuple[str, str], list[ProcessStack]]:
    """Return the main processes of ranks by what they do, in words for one and for several."""
    found: dict[tuple[str, str], list[ProcessStack]] = {}
    for process in sorted((each for each in processes if each.main), key=lambda one: one.rank):
        found.setdefault(_phrases(process), []).append(process)
    return found


def _group(alike: list[ProcessStack]) -> dict[str, Any]:
    first, named = alike[0], alike[:MAX_NAMED]
    does = {"place": first.place, "error": first.error, "collective": first.collective, "doing": first.doing}
    return {"ranks": [one.rank for one in named], "more": len(alike) - len(named), **does}


def summary(processes: Iterable[ProcessStack]) -> str:
    """``rank 1 waits in all_reduce (train.py:88); ranks 0, 2 are in data loading (train.py:20)``."""
    return "; ".join(
        f"rank {who[0].rank} {one}" if len(who) == 1 else f"ranks {_named(who)} {many}"
        for (one, many), who in _alike(processes).items()
    )


def _named(alike: list[ProcessStack]) -> str:
    more = f" and {len(alike) - MAX_NAMED} more" if len(alike) > MAX_NAMED else ""
    return ", ".join(str(one.rank) for one in alike[:MAX_NAMED]) + more


def _phrases(process: ProcessStack) -> tuple[str, str]:
    """Return the words that go after one rank, and after several."""
    place = f" ({process.place})" if process.place else ""
    if process.error:
        return (f"cannot be read: {process.error}",) * 2
    if process.collective:
        return f"waits in {process.collective}{place}", f"wait in {process.collective}{place}"
    doing = process.doing or "native code"
    return f"is in {doing}{place}", f"are in {doing}{place}"


def of_job(db: Database, job_id: JobId) -> list[api.Stacks]:
    """Return the stacks of the job's newest attempt that has any, the newest first."""
    of_job = select(func.max(Attempt.number)).join(Stacks, Stacks.attempt_id == Attempt.id)
    newest = of_job.where(Attempt.job_id == job_id).scalar_subquery()  # a dump may have 2 MiB
    query = (
        select(Attempt.number, Member.node, Stacks.__table__)
        .join(Stacks, Stacks.attempt_id == Attempt.id)
        .join(Member, (Member.attempt_id == Attempt.id) & (Member.node_rank == Stacks.node_rank))
        .where(Attempt.job_id == job_id, Attempt.number == newest)
        .order_by(Stacks.serial.desc(), Stacks.node_rank)
    )
    with db.read() as tx:
        return [_present(each) for each in _StoredStacks.all(tx.execute(query))]


def _present(stored: _StoredStacks) -> api.Stacks:
    return api.Stacks(
        attempt=stored.number,
        node=stored.node,
        node_rank=stored.node_rank,
        serial=stored.serial,
        at=moment(stored.at_us),
        summary=summary(stored.dump.processes),
        processes=stored.dump.processes,
        left_out=stored.dump.left_out,
    )
