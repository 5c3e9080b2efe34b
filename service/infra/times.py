"""Stored times (integer microseconds UTC), and as the API shows them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal

#: Reader of the wall clock, in the microseconds that are stored. A write transaction that others follow by time reads
#: it once it has begun: while it waits for its turn, time passes.
Clock = Callable[[], int]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """The time, exact to the microsecond; what a wrong clock has put outside the calendar is shown at its edge."""
    return _EPOCH + timedelta(microseconds=min(max(us, 0), _LAST))


def microseconds(at: datetime) -> int:
    """The time as it is stored; it must have a time zone."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def minute(us: float) -> datetime:
    """The time to the nearest minute: an estimate that says the same for a while."""
    return moment(60_000_000 * round(us / 60_000_000))


def words(at: datetime, timespec: Literal["minutes", "seconds"] = "minutes") -> str:
    """Return a time as messages write it, such as ``2026-11-25 22:15 UTC``: clients find it there by this form."""
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(' ', timespec)} UTC"
