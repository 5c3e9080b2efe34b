"""Visibility of jobs: who may read a job, its logs, metrics, checkpoints, files, code and events.

The owner and administrators always; everybody else by the visibility of its project. This is the one place of that
rule: `may_read` for a job or sweep, `readable` for lists of them. Both follow from what the caller's token was found
with, so they ask no database, and a right that is lost is lost with the next look at the token.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from sqlalchemy import ColumnElement, or_, true

from service.db.models import Group, Job
from service.identity import audit
from service.identity.callers import Caller

#: Stands for the name of a job that the reader may not read, and for values of variables that are not theirs.
HIDDEN = "(not shown)"


class Owned(Protocol):
    """A job or sweep, by what decides who reads it."""

    @property
    def user_id(self) -> str: ...
    @property
    def project(self) -> str: ...


_Found = TypeVar("_Found", bound=Owned)


def may_read(caller: Caller, owned: Owned) -> bool:
    """Return whether the caller may read the job or sweep."""
    return may_read_env(caller, owned.user_id) or owned.project in caller.projects


def found_for(caller: Caller, found: _Found | None) -> _Found | None:
    """Return what a request names if the caller may read it, else None: the audit alone is told that it exists."""
    if found is None or may_read(caller, found):
        return found
    audit.mark_hidden()
    return None


def may_read_env(caller: Caller, owner_id: str) -> bool:
    """Return whether the caller sees the values of a job's `env`, as its owner and administrators do."""
    return caller.admin or caller.user_id == owner_id


def readable(caller: Caller, table: type[Job] | type[Group]) -> ColumnElement[bool]:
    """Return the condition of those rows that the caller may read."""
    if caller.admin:
        return true()
    return or_(table.user_id == caller.user_id, table.project.in_(sorted(caller.projects)))


def shown_name(caller: Caller, owned: Owned, name: str) -> str:
    """Return the name of a job as the caller sees it where everybody's jobs are listed."""
    return name if may_read(caller, owned) else HIDDEN


def without_values(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec whose variables keep their names and lose their values."""
    return {**spec, "env": dict.fromkeys(spec.get("env") or {}, HIDDEN)}
