import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from torchyard.cli import moments
from torchyard.exceptions import SpecError

NOW = datetime(2026, 11, 24, 12, 0, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _two_hours_east() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "XST-02:00")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        ("10m", "2026-11-24T11:50:30"),
        ("1h30m", "2026-11-24T10:30:30"),
        ("90", "2026-11-24T11:59:00"),
        ("14:00", "2026-11-24T12:00:00"),
        ("14:00:31", "2026-11-23T12:00:31"),
        ("00:30", "2026-11-23T22:30:00"),
        ("14:05", "2026-11-23T12:05:00"),
        ("2026-11-20T09:00", "2026-11-20T07:00:00"),
        ("2026-11-20 09:00:01.5", "2026-11-20T07:00:01.500000"),
        ("2026-11-20T09:00:00Z", "2026-11-20T09:00:00"),
        ("2026-11-20T09:00:00+01:00", "2026-11-20T08:00:00"),
        ("2026-11-20", "2026-11-19T22:00:00"),
    ],
)
def test_a_past_moment_is_an_age_a_clock_or_a_date(written: str, utc: str) -> None:
    assert moments.past("--since", written, NOW).astimezone(UTC).isoformat() == f"{utc}+00:00"


@pytest.mark.parametrize(
    "written", ["", "soon", "-10m", "25:00", "14:5x", "14:00:00:00", "0001-01-01T00:00", "999999999d"]
)
def test_what_is_no_moment_is_told_the_forms(written: str) -> None:
    with pytest.raises(SpecError) as caught:
        moments.past("--since", written, NOW)
    assert str(caught.value) == (
        f"--since: {written!r} is no time: write 10m, 14:05, 2026-11-23T09:00 or …T09:00+01:00"
    )


def test_a_moment_to_come_has_a_date() -> None:
    assert moments.moment("--from", "2026-12-01T09:00").astimezone(UTC).hour == 7
    with pytest.raises(SpecError, match="--from: '10m' is no time: write 2026-11-23T09:00"):
        moments.moment("--from", "10m")


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        ("2h", "2026-11-24T14:00:30"),
        ("18:00", "2026-11-24T16:00:00"),
        ("14:00", "2026-11-25T12:00:00"),
        ("2026-11-25T09:00", "2026-11-25T07:00:00"),
        ("2026-11-25T09:00+01:00", "2026-11-25T08:00:00"),
    ],
)
def test_times_ahead(written: str, utc: str) -> None:
    assert moments.future("--until", written, NOW) == datetime.fromisoformat(utc).replace(tzinfo=UTC)


@pytest.mark.parametrize(("written", "words"), [("soon", "is no time"), ("2026-11-23T09:00", "is over already")])
def test_times_that_are_not_ahead(written: str, words: str) -> None:
    with pytest.raises(SpecError, match=f"^--until: .*{words}"):
        moments.future("--until", written, NOW)


def test_a_time_that_the_clocks_pass_over_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert moments.moment("--from", "2027-03-28T03:00").astimezone(UTC).hour == 1
        assert moments.moment("--from", "2027-10-31T02:30").astimezone(UTC).hour == 0
        with pytest.raises(SpecError, match="--from: the clocks here pass over 2027-03-28T02:30"):
            moments.moment("--from", "2027-03-28T02:30")
    finally:
        monkeypatch.undo()
        time.tzset()
