"""Corrected estimates hold what they promise."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.estimation import calibration, estimates
from service.estimation.calibration import ForecastCalibration, ForecastOutcome
from service.estimation.estimates import EstimateInput, History, HistoryKey, Quantiles, RawEstimate, StepProgress
from service.scheduler.model.jobs import EstimateSource

MINUTE = 60_000_000
KIN = HistoryKey("vision", "ada", "digits")
#: By how much the share of jobs done by p10, p50 and p90 may miss .1, .5 and .9 over 1,000 jobs.
TOLERANCE = 0.06


def outcome(raw: Quantiles, actual_us: int, basis: str = "limit") -> ForecastOutcome:
    return ForecastOutcome(basis=basis, made_us=1, raw=raw, published=raw, actual_us=actual_us)


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 10**15), min_size=3, max_size=3), st.integers(0, 10**15)), max_size=40),
    st.lists(st.integers(0, 10**15), min_size=3, max_size=3),
    st.none() | st.integers(0, 10**12),
)
def test_what_is_published_is_ordered_never_negative_and_within_the_limit(
    past: list[tuple[list[int], int]], asked: list[int], limit: int | None
) -> None:
    known = ForecastCalibration()
    for before, actual in past:
        known.add(outcome(Quantiles(*sorted(before)), actual))
    raw = RawEstimate(EstimateSource.LIMIT, "limit", Quantiles(*sorted(asked)))
    found = known.estimate(raw, EstimateInput(key=KIN, limit_us=limit))
    assert 0 <= found.p10_us <= found.p50_us <= found.p90_us
    assert limit is None or found.p90_us <= limit


def test_nothing_is_corrected_by_a_few_jobs() -> None:
    known, raw = ForecastCalibration(), RawEstimate(EstimateSource.LIMIT, "limit", Quantiles(1, 2, 3))
    for _ in range(calibration.LEAST - 1):
        known.add(outcome(Quantiles(1, 2, 3), 100))
    assert known.corrected(raw) == (1, 2, 3)
    known.add(outcome(Quantiles(1, 2, 3), 100))
    assert known.corrected(raw) == (100, 100, 100)


def test_only_the_newest_of_the_same_basis_count() -> None:
    known, raw = ForecastCalibration(), RawEstimate(EstimateSource.LIMIT, "limit", Quantiles(10, 10, 10))
    for actual in [1] * calibration.WINDOW + [20] * calibration.WINDOW:
        known.add(outcome(raw.quantiles, actual))
        known.add(outcome(raw.quantiles, 7, "progress"))
    assert known.corrected(raw) == (20, 20, 20)


def test_the_report() -> None:
    known = ForecastCalibration()
    for actual in (1, 2, 4, 8):
        known.add(outcome(Quantiles(1, 4, 6), actual))
    (accuracy,) = known.report()
    assert (accuracy.basis, accuracy.count, accuracy.shares, accuracy.since_us) == ("limit", 4, (0.25, 0.75, 0.75), 1)
    assert accuracy.error == pytest.approx(0.75)  # of 3, 1, 0 and 1/2


def simulated(rng: random.Random, spread: float, kinds: int) -> list[tuple[HistoryKey, int]]:
    """1,500 jobs of some kinds of work with lengths from seconds to weeks, each job off its kind's by a factor of
    log-normal spread, one in twenty ten times as long.
    """
    scales = [10 ** rng.uniform(0, 6) * 1_000_000 for _ in range(kinds)]
    jobs = []
    for _ in range(1_500):
        kind = rng.randrange(kinds)
        tail = 10 if rng.random() < 0.05 else 1
        jobs.append(
            (HistoryKey("vision", "ada", str(kind)), round(scales[kind] * tail * rng.lognormvariate(0, spread)))
        )
    return jobs


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 2), st.integers(1, 60))
def test_histories_come_out_calibrated(seed: int, spread: float, kinds: int) -> None:
    known, accuracy = History(), ForecastCalibration()
    published: list[tuple[Quantiles, int]] = []
    for key, actual in simulated(random.Random(seed), spread, kinds):
        raw = known.raw(key)
        if raw is not None:
            published.append((accuracy.corrected(raw), actual))
            accuracy.add(outcome(raw.quantiles, actual, raw.basis))
        known.add(key, actual)
    late = published[-1_000:]
    for place, share in enumerate(estimates.QUANTILES):
        done = sum(actual <= quantiles[place] for quantiles, actual in late) / len(late)
        assert abs(done - share) <= TOLERANCE


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 1), st.floats(0.5, 2))
def test_progress_comes_out_calibrated(seed: int, spread: float, drift: float) -> None:
    """Steps after the first minute take `drift` times as long as those before, with log-normal luck."""
    rng, accuracy = random.Random(seed), ForecastCalibration()
    published: list[tuple[Quantiles, int]] = []
    for _ in range(1_200):
        left = rng.randrange(100, 100_000)
        raw = estimates.from_progress(StepProgress(steps_left=left, watched_steps=60, watched_us=MINUTE))
        assert raw is not None
        actual = round(left * 1_000_000 * drift * rng.lognormvariate(0, spread))
        published.append((accuracy.corrected(raw), actual))
        accuracy.add(outcome(raw.quantiles, actual, raw.basis))
    late = published[-1_000:]
    for place, share in enumerate(estimates.QUANTILES):
        done = sum(actual <= quantiles[place] for quantiles, actual in late) / len(late)
        assert abs(done - share) <= TOLERANCE
