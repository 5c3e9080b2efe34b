"""Records of metric series."""

import pytest

from service.db.records.metrics import LastMetric, stored_value
from service.db.special_values import CODES


def test_a_stored_value_is_a_number_or_the_word_for_one() -> None:
    assert stored_value(0.0, 0) == 0.0
    assert stored_value(2.5, 0) == 2.5
    assert [stored_value(None, CODES[word]) for word in ("nan", "inf", "-inf")] == ["nan", "inf", "-inf"]


def test_no_number_without_a_word_is_an_error() -> None:
    with pytest.raises(ValueError, match="special"):
        stored_value(None, 0)


def test_the_newest_value_of_a_series() -> None:
    last = LastMetric(
        job_id="job-1", name="loss", stream="rank-0", last_value=None, last_special=CODES["nan"], last_time_us=1
    )
    assert last.value == "nan"
