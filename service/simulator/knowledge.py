"""Estimates of running times that a policy gets in a simulation.

Oracles get the true time. All other policies get a job's remaining time once it has run for `TOLD_US`, as the trainer's
step counter would tell it, and before that only the times of earlier finished jobs of the same user, project and number
of GPUs. All but `fair`, which asks for no estimates, get the owner's estimate where the trace has one.
"""

from service.estimation.estimates import History, HistoryKey, Quantiles
from service.scheduler.model.jobs import Estimate, EstimateSource
from service.simulator.trace import SECOND, TraceJob
from torchyard.spec.policy import Order

#: Running time after which a job's own steps tell how long it will take.
TOLD_US = 60 * SECOND
ORACLES = frozenset({Order.SJF, Order.SRTF})


class Knowledge:
    """Source of the estimates of remaining time for one policy."""

    def __init__(self, order: Order) -> None:
        self._oracle = order in ORACLES
        self._asks_owners = order is not Order.FAIR
        self._history = History()

    def of_new(self, job: TraceJob) -> Estimate | None:
        """Return the estimate for a job that has not run; None if nothing is known."""
        if self._oracle:
            return _certain(job.duration_us, EstimateSource.ORACLE, None)
        if job.estimate_us is not None and self._asks_owners:
            return _certain(job.estimate_us, EstimateSource.LIMIT, None)
        raw = self._history.raw(_history_key(job))
        return None if raw is None else _estimate(raw.quantiles, raw.source)

    def of_known(self, left_us: int, as_of_us: int | None) -> Estimate:
        """Return the estimate for a job that has run for `TOLD_US` and has `left_us` of its time left."""
        return _certain(left_us, EstimateSource.ORACLE if self._oracle else EstimateSource.PROGRESS, as_of_us)

    def learn(self, job: TraceJob) -> None:
        """Learn the running time of a job that has ended."""
        self._history.add(_history_key(job), job.duration_us)


def _history_key(job: TraceJob) -> HistoryKey:
    return HistoryKey(job.project, job.user, str(job.gpus))


def _certain(time_us: int, source: EstimateSource, as_of_us: int | None) -> Estimate:
    return Estimate(p10_us=time_us, p50_us=time_us, p90_us=time_us, source=source, as_of_us=as_of_us)


def _estimate(quantiles: Quantiles, source: EstimateSource) -> Estimate:
    return Estimate(p10_us=quantiles.p10, p50_us=quantiles.p50, p90_us=quantiles.p90, source=source)
