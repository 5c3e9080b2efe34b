"""Moments of the examples: a morning in UTC."""

from datetime import UTC, datetime


def at(clock: str) -> datetime:
    """The moment at which a clock shows ``hours:minutes``."""
    hours, minutes = map(int, clock.split(":"))
    return datetime(2026, 11, 24, hours, minutes, tzinfo=UTC)
