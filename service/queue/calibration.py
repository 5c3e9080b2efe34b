"""Calibration: the accuracy of estimates of running times, as people see it."""

from service.db.engine import Database
from service.estimation.calibration import ForecastAccuracy
from service.estimation.forecasts import Estimator
from service.infra.times import moment
from torchyard import api


def report(db: Database, estimator: Estimator, now: int) -> api.Calibration:
    """Return the accuracy of estimates, by what they were made of."""
    with db.read() as tx:
        accuracy = estimator.accuracy(tx, now)
    return api.Calibration(sources=[_source(each) for each in accuracy])


def _source(accuracy: ForecastAccuracy) -> api.SourceCalibration:
    p10, p50, p90 = accuracy.shares
    return api.SourceCalibration(
        source=accuracy.basis,
        n=accuracy.count,
        p10=p10,
        p50=p50,
        p90=p90,
        median_relative_error=accuracy.error,
        since=moment(accuracy.since_us),
    )
