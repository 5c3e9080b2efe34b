"""Lists of what was installed for attempts, stored once for all that had the same."""

import hashlib
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError
from sqlalchemy import Connection, Select, Table, bindparam, select, update

from service.db.engine import Database
from service.db.models import Attempt, Environment
from service.db.records.record import Record
from service.db.upsert import insert
from service.errors import TooLargeError, field_problem, field_problems, invalid
from torchyard import api, wire
from torchyard.ids import AttemptId, JobId

_KNOWN: Select[Any] = select(Environment.sha256).where(Environment.sha256 == bindparam("sha256"))
_SET_FIRST = update(cast("Table", Attempt.__table__)).where(
    Attempt.id == bindparam("attempt"), Attempt.environment.is_(None)
)


@dataclass(frozen=True, slots=True)
class _StoredEnvironment(Record):
    """The environment of an attempt, by the attempt's number."""

    number: int
    content: wire.Environment


def take(tx: Connection, attempt_id: AttemptId, told: wire.EnvironmentReport, now: int) -> bool:
    """Make an environment the attempt's, unless it has one; return whether its content is missing.

    Raises a ProblemError for content that is none.
    """
    if told.content is not None:
        content = _parsed(told.sha256, told.content).model_dump(mode="json")
        row = insert(tx, Environment).values(sha256=told.sha256, content=content, created_us=now)
        tx.execute(row.on_conflict_do_nothing())
    elif tx.scalar(_KNOWN, {"sha256": told.sha256}) is None:
        return True
    tx.execute(_SET_FIRST, {"attempt": attempt_id, "environment": told.sha256})
    return False


def _parsed(sha256: str, content: str) -> wire.Environment:
    data = content.encode(errors="replace")
    if len(data) > wire.MAX_ENVIRONMENT:
        raise TooLargeError(wire.MAX_ENVIRONMENT)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise field_problem("sha256", "it is not that of the content: send the content that it is of")
    try:
        return wire.Environment.model_validate_json(data)
    except ValidationError as error:
        raise invalid(field_problems(error.errors(), wire.Environment, "content")) from error


def of_job(db: Database, job_id: JobId, attempt: int | None) -> api.JobEnvironment:
    """Return the environment of an attempt, by default of the newest that has one."""
    query = (
        select(Attempt.number, Environment.content)
        .join(Environment, Environment.sha256 == Attempt.environment)
        .where(Attempt.job_id == job_id)
        .order_by(Attempt.number.desc())
        .limit(1)
    )
    if attempt is not None:
        query = query.where(Attempt.number == attempt)
    with db.read() as tx:
        found = _StoredEnvironment.first(tx.execute(query))
    if found is None:
        return api.JobEnvironment(attempt=None, environment=None)
    return api.JobEnvironment(attempt=found.number, environment=found.content)
