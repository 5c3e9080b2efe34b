"""Correction of estimates by how earlier ones turned out. Pure.

Each quantile is corrected by itself, as in conformalised quantile regression (Romano, Patterson and Candès 2019): the
last estimates of the same basis tell by which factor jobs took longer, and p90 is multiplied by the factor that nine of
ten stayed below. If the next job is like the last ones, it is done by p90 in nine cases of ten, whatever the shape of
running times.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from service.estimation.estimates import QUANTILES, EstimateInput, Quantiles, RawEstimate, capped, quantile
from service.scheduler.model.jobs import Estimate

#: Forecasts of one basis that count, the newest.
WINDOW = 200
#: With fewer nothing is corrected.
LEAST = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class ForecastOutcome:
    """A forecast whose job has succeeded."""

    basis: str
    made_us: int
    #: Before the correction, and as it was published.
    raw: Quantiles
    published: Quantiles
    actual_us: int


@dataclass(frozen=True, kw_only=True)
class ForecastAccuracy:
    """Accuracy of the forecasts of one basis; the shares done by p10, p50 and p90 should be .1, .5 and .9."""

    basis: str
    count: int
    shares: tuple[float, float, float]
    #: Median of the published p50's error, as a part of what the job took.
    error: float
    since_us: int


class ForecastCalibration:
    """The last outcomes of each basis."""

    def __init__(self) -> None:
        self._outcomes: dict[str, deque[ForecastOutcome]] = {}
        self._factors: dict[str, tuple[float, ...]] = {}

    def add(self, outcome: ForecastOutcome) -> None:
        """Add one outcome; the newest come last."""
        self._outcomes.setdefault(outcome.basis, deque(maxlen=WINDOW)).append(outcome)
        self._factors.pop(outcome.basis, None)

    def corrected(self, raw: RawEstimate) -> Quantiles:
        """Return the quantiles by which one, five and nine of ten such jobs were done; in order, and never negative."""
        if raw.basis not in self._factors:
            self._factors[raw.basis] = _factors(self._outcomes.get(raw.basis, ()))
        factors = self._factors[raw.basis]
        return Quantiles(*sorted(round(each * f) for each, f in zip(raw.quantiles, factors, strict=True)))

    def estimate(self, raw: RawEstimate, given: EstimateInput) -> Estimate:
        """Return the estimate that the policy is told: corrected, and within what the job may take."""
        p10, p50, p90 = capped(self.corrected(raw), given)
        return Estimate(p10_us=p10, p50_us=p50, p90_us=p90, source=raw.source)

    def report(self) -> list[ForecastAccuracy]:
        """Return the accuracy of each basis's forecasts, sorted by basis."""
        return [_accuracy(basis, outcomes) for basis, outcomes in sorted(self._outcomes.items())]


def _factors(outcomes: Iterable[ForecastOutcome]) -> tuple[float, ...]:
    known = list(outcomes)
    if len(known) < LEAST:
        return (1.0,) * len(QUANTILES)
    return tuple(math.exp(_shift(known, place)) for place in range(len(QUANTILES)))


def _shift(outcomes: Sequence[ForecastOutcome], place: int) -> float:
    scores = sorted(math.log(max(1, each.actual_us) / max(1, each.raw[place])) for each in outcomes)
    return quantile(scores, QUANTILES[place])


def _accuracy(basis: str, outcomes: Sequence[ForecastOutcome]) -> ForecastAccuracy:
    done = [sum(each.actual_us <= each.published[place] for each in outcomes) / len(outcomes) for place in range(3)]
    errors = [abs(each.published.p50 - each.actual_us) / max(1, each.actual_us) for each in outcomes]
    return ForecastAccuracy(
        basis=basis,
        count=len(outcomes),
        shares=(done[0], done[1], done[2]),
        error=median(errors),
        since_us=min(each.made_us for each in outcomes),
    )
