from datetime import UTC, datetime, timedelta, timezone

import pytest

from service.infra.times import moment, words


def test_microseconds_are_kept() -> None:
    assert moment(1_700_000_000_000_001) == datetime(2023, 11, 14, 22, 13, 20, 1, UTC)


@pytest.mark.parametrize(("us", "year"), [(2**63 - 1, 9999), (10**40, 9999), (-1, 1970)])
def test_what_lies_outside_the_calendar_is_shown_at_its_edge(us: int, year: int) -> None:
    assert moment(us).year == year


def test_messages_write_every_time_in_one_form() -> None:
    assert words(moment(1_700_000_000_000_001)) == "2023-11-14 22:13 UTC"
    assert (
        words(datetime(2023, 11, 15, 0, 13, 20, 5, timezone(timedelta(hours=2))), "seconds")
        == "2023-11-14 22:13:20 UTC"
    )
