"""Stored times (integer microseconds UTC) as the API shows them."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(us: int) -> datetime:
    """The time, exact to the microsecond."""
    return _EPOCH + timedelta(microseconds=us)
