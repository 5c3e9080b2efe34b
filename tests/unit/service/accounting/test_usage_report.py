"""What a digest makes of numbers: days, weeks, and wastes with their mends."""

from datetime import UTC, date, datetime

import pytest

from service.accounting.usage_report import DEFAULT_DAYS, DateRange, as_csv, days, week
from service.errors import ProblemError
from torchyard.api.sharing import Hours, UsageReport, UsageRow

HOUR = 3_600_000_000
NOW = round(datetime(2026, 11, 21, 20, tzinfo=UTC).timestamp()) * 1_000_000


def test_days_without_a_wish_are_four_weeks_that_end_today() -> None:
    found = days(None, None, NOW)
    assert (found.until, len(found.numbers)) == (date(2026, 11, 21), DEFAULT_DAYS)
    assert (
        days(date(2026, 1, 1), date(2026, 1, 1), NOW).span_us[1]
        - days(date(2026, 1, 1), date(2026, 1, 1), NOW).span_us[0]
        == 24 * HOUR
    )
    assert days(None, date.min, NOW) == DateRange(since=date.min, until=date.min)


def test_a_week_is_from_monday_to_sunday_the_last_one_by_default() -> None:
    assert week("2026-W01", NOW) == ("2026-W01", DateRange(since=date(2025, 12, 29), until=date(2026, 1, 4)))
    assert week(None, NOW) == ("2026-W46", DateRange(since=date(2026, 11, 9), until=date(2026, 11, 15)))


@pytest.mark.parametrize("text", ["", "2026", "2026-W54", "W01", "2026-W01-1", "9999-W99", "0000-W01"])
def test_what_is_no_week_is_refused(text: str) -> None:
    with pytest.raises(ProblemError, match="2026-W47"):
        week(text, NOW)


def test_a_table_for_programs() -> None:
    total = Hours(useful=1, idle=0, failed=0, lost=0.5, total=1.5, stoppable=0.25)
    rows = [UsageRow(of="ada", **total.model_dump())]
    report = UsageReport(since=date(2026, 1, 1), until=date(2026, 1, 2), by="user", rows=rows, total=total)
    assert as_csv(report).splitlines() == [
        "user,useful,idle,failed,lost,total,stoppable",
        "ada,1.0000,0.0000,0.0000,0.5000,1.5000,0.2500",
    ]
