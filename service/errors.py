"""Errors of the service: each is a problem that the API presents as it is (RFC 9457)."""

import sqlite3
from collections.abc import Iterable, Sequence

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from torchyard.api import FieldProblem
from torchyard.quantities import format_size
from torchyard.spec import error_messages
from torchyard.translatable import TranslatableText

DATABASE_AWAY = TranslatableText("database-away", "The database does not answer now: try again in a moment.")
DATABASE_BUSY = TranslatableText(
    "database-busy", "The database is busy: something else has held its lock for seconds, try again in a moment."
)
DISK_FULL = TranslatableText(
    "disk-full", "The service's disk is full: free space where its database and its artifacts lie."
)
#: SQLSTATEs of PostgreSQL: `disk_full`, `lock_not_available`.
_PG_FULL, _PG_LOCKED = "53100", "55P03"
_SQLITE_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class ProblemError(Exception):
    """A request that cannot be answered: `kind` is one of `torchyard.problems.KINDS`, `detail` names the mend."""

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        errors: Sequence[FieldProblem] = (),
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.errors = list(errors)
        self.retry_after_s = retry_after_s
        """Seconds after which it is worth trying again; None where nothing says it."""


def field_problem(field: str, message: str) -> ProblemError:
    """A request with one wrong field."""
    return ProblemError("invalid-request", f"{field}: {message}", errors=[FieldProblem(field=field, message=message)])


def not_found(what: str, name: object) -> ProblemError:
    """Something that does not exist, or not any more."""
    code, template = nothing_named(what)
    return ProblemError("not-found", TranslatableText(code, template, name=str(name)[:100]))


def nothing_named(what: str) -> tuple[str, str]:
    """Return the code and the template of the message that there is no such thing of a name."""
    return f"no-{what.replace(' ', '-')}", f"There is no {what} {{name!r}}."


def of_database(error: Exception) -> ProblemError:
    """Tell what a failure of the database means: no space, a lock that somebody else keeps, or that it is away."""
    origin = getattr(error, "orig", None)
    state, code = getattr(origin, "sqlstate", None), getattr(origin, "sqlite_errorcode", 0) & 0xFF
    if state == _PG_FULL or code == sqlite3.SQLITE_FULL:
        return ProblemError("insufficient-storage", DISK_FULL)
    if state == _PG_LOCKED or code in _SQLITE_LOCKED:
        return ProblemError("unavailable", DATABASE_BUSY)
    return ProblemError("unavailable", DATABASE_AWAY)


def field_problems(
    errors: Iterable[ErrorDetails], model: type[BaseModel] | None = None, prefix: str = ""
) -> list[FieldProblem]:
    """Pydantic's errors with dotted field names; unknown fields get the nearest name that `model` has."""
    return [
        FieldProblem(
            field=".".join(filter(None, (prefix, *map(str, error["loc"])))) or "(body)",
            message=error_messages.message(error, model),
        )
        for error in errors
    ]


def invalid(errors: Sequence[FieldProblem]) -> ProblemError:
    """A request with wrong fields; the detail is readable without the list."""
    shown = "; ".join(f"{error.field}: {error.message}" for error in errors[:3])
    more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
    return ProblemError("invalid-request", shown + more, errors=errors)


class TooLargeError(ProblemError):
    """More bytes than are taken here."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            "payload-too-large",
            TranslatableText("at-once", "At most {most} are taken here: send less at once.", most=format_size(limit)),
        )


class NotAHashError(ProblemError):
    """A blob's name that is not a SHA-256."""

    def __init__(self, text: str) -> None:
        super().__init__(
            "invalid-request",
            TranslatableText(
                "no-hash", "{text!r} is not a SHA-256: give 64 lower-case hexadecimal digits.", text=text[:80]
            ),
        )


class WrongHashError(ProblemError):
    """The content that arrived is not what was announced."""

    def __init__(self, announced: str, found: str) -> None:
        super().__init__(
            "invalid-request",
            TranslatableText(
                "other-hash",
                "The content hashes to {found}, not {announced}: send it again.",
                found=found,
                announced=announced,
            ),
        )


class NotPlacedError(ProblemError):
    """A file that should lie in the inbox but does not, or not as announced."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "invalid-request",
            f"The inbox has no regular file {name[:160]!r} of that size: name it <sha256>.<random>, or upload it.",
        )


class BadPathError(ProblemError):
    """A file name that could leave its folder."""

    def __init__(self, field: str, path: str, why: str) -> None:
        super().__init__(
            "invalid-request",
            TranslatableText("bad-path", "{field}: {path!r} {why}", field=field, path=path[:200], why=why),
        )


class OffsetAheadError(ProblemError):
    """A batch that starts beyond what is stored: something before it is missing. `mark` is where to go on from."""

    def __init__(self, offset: int, mark: int) -> None:
        super().__init__(
            "conflict", f"offset: {offset} lies beyond the {mark} bytes that are stored: go on from {mark}"
        )
        self.mark = mark


class DatabaseBusyError(ProblemError):
    """Others have written to the database for too long."""

    def __init__(self) -> None:
        super().__init__("unavailable", DATABASE_BUSY)


class NoRoomError(ProblemError):
    """The disk of the artifact store is nearly full."""

    def __init__(self, free: int) -> None:
        super().__init__(
            "insufficient-storage",
            TranslatableText(
                "store-full",
                "The artifact store has only {free} left: delete checkpoints, or give it a larger disk.",
                free=format_size(free),
            ),
        )


class StaleSpecError(ProblemError):
    """A stored spec that was valid when it was submitted, and is not any more."""

    def __init__(self, mistake: str) -> None:
        super().__init__(
            "not-acceptable-state",
            f"This version refuses the job's spec: {mistake}. Submit it again, with that mended.",
        )
