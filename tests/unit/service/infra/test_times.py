from datetime import UTC, datetime

import pytest

from service.infra.times import moment


def test_microseconds_are_kept() -> None:
    assert moment(1_700_000_000_000_001) == datetime(2023, 11, 14, 22, 13, 20, 1, UTC)


@pytest.mark.parametrize(("us", "year"), [(2**63 - 1, 9999), (10**40, 9999), (-1, 1970)])
def test_what_lies_outside_the_calendar_is_shown_at_its_edge(us: int, year: int) -> None:
    assert moment(us).year == year
