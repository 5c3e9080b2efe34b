"""Times as people type them."""

from datetime import UTC, datetime, timedelta


def moment(option: str, text: str) -> datetime:
    """A date with a time, in the local zone where it names none."""
    from torchyard.exceptions import SpecError

    try:
        return _dated(option, text)
    except (ValueError, OverflowError) as error:
        raise SpecError(
            f"{option}: {text!r} is no time: write 2026-11-23T09:00, or with a zone …T09:00+01:00"
        ) from error


def past(option: str, text: str, now: datetime) -> datetime:
    """A time ago (``10m``), the last time that a clock showed it (``14:05``), or a date with a time."""
    from torchyard.exceptions import SpecError

    for read in (_ago, _on_the_clock, lambda text, _: _dated(option, text)):
        try:
            return read(text, now)
        except (ValueError, OverflowError):
            continue
    raise SpecError(f"{option}: {text!r} is no time: write 10m, 14:05, 2026-11-23T09:00 or …T09:00+01:00")


def future(option: str, text: str, now: datetime) -> datetime:
    """A time from now (``2h``), the next time that a clock shows it (``18:00``), or a date with a time."""
    from torchyard.exceptions import SpecError

    for read in (_ahead, _next_on_the_clock, lambda text, _: _dated(option, text)):
        try:
            found = read(text, now)
        except (ValueError, OverflowError):
            continue
        if found <= now:
            raise SpecError(f"{option}: {text} is over already")
        return found
    raise SpecError(f"{option}: {text!r} is no time: write 2h, 18:00, 2026-11-23T18:00 or …T18:00+01:00")


def _ahead(text: str, now: datetime) -> datetime:
    return now + (now - _ago(text, now))


def _next_on_the_clock(text: str, now: datetime) -> datetime:
    last = _on_the_clock(text, now)
    return datetime.combine(last.date() + timedelta(days=1), last.time()).astimezone() if last <= now else last


def _dated(option: str, text: str) -> datetime:
    typed = datetime.fromisoformat(text)
    found = typed.astimezone()
    if typed.tzinfo is None and found.astimezone(UTC).astimezone().replace(tzinfo=None) != typed:
        from torchyard.exceptions import SpecError

        raise SpecError(f"{option}: the clocks here pass over {text}: summer time begins")
    return found


def _ago(text: str, now: datetime) -> datetime:
    from torchyard.quantities import parse_duration

    return now - timedelta(seconds=parse_duration(text))


def _on_the_clock(text: str, now: datetime) -> datetime:
    form = "%H:%M:%S" if text.count(":") > 1 else "%H:%M"
    clock, here = datetime.strptime(text, form).time(), now.astimezone()
    today = datetime.combine(here.date(), clock).astimezone()
    return today if today <= here else datetime.combine(here.date() - timedelta(days=1), clock).astimezone()
