import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.network import speed


@given(st.floats(1e3, 1e12), st.floats(1, 1e12), st.floats(1e-4, 1e3))
def test_slow_is_what_takes_half_of_a_step(rate: float, sent: float, step_time: float) -> None:
    exchange = sent / rate
    assert speed.is_slow(rate, sent, step_time) == (exchange / step_time >= 0.5)
    assert speed.share(rate, sent, exchange) == pytest.approx(1)


def test_a_gigabyte_a_second_is_the_least_that_serves_an_unknown_training() -> None:
    assert speed.is_slow(1e9)
    assert not speed.is_slow(1.1e9)


@pytest.mark.parametrize(
    ("rate", "shown"), [(12.34e9, "12.3 GB/s"), (1e9, "1.0 GB/s"), (117e6, "117 MB/s"), (1.25e6, "1.25 MB/s")]
)
def test_rates_as_people_read_them(rate: float, shown: str) -> None:
    assert speed.shown(rate) == shown
