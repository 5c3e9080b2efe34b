from typing import cast

from sqlalchemy import Connection

from service.db.records.spec import StoredSpec
from service.estimation.forecasts import Estimator
from service.scheduler.model.jobs import Estimate, EstimateSource
from service.scheduler.model.state import SchedulerState
from service.scheduler_cache.default_estimates import KINDS, DefaultEstimates
from service.scheduler_cache.load_jobs import LoadedJob
from torchyard.ids import JobId

TX = cast("Connection", None)
STATE = cast("SchedulerState", None)


class Asked:
    """An estimator that notes which kinds it is asked about."""

    def __init__(self) -> None:
        self.works: list[str] = []

    def of_history(self, _tx: object, key: object, _limit_us: object, _now: int) -> Estimate:
        self.works.append(str(key))
        return Estimate(p10_us=1, p50_us=2, p90_us=3, source=EstimateSource.HISTORY)


def row(number: int) -> LoadedJob:
    spec = StoredSpec({"command": ["train", str(number)], "resources": {"gpus": 1}})
    empty = LoadedJob._make([None] * len(LoadedJob._fields))
    return empty._replace(id=JobId(f"job-{number}"), project="default", user_id="u", spec=spec)


def test_a_round_asks_about_each_kind_that_still_waits_once() -> None:
    asked = Asked()
    estimates = DefaultEstimates(cast("Estimator", asked))
    for number in range(KINDS + 10):
        estimates.add(TX, row(number), 0)
    first = list(asked.works)
    assert len(set(first)) == KINDS + 10
    estimates.begin_round()
    for number in (0, KINDS + 1):
        estimates.drop(JobId(f"job-{number}"))
    asked.works.clear()
    for _ in range(3):
        estimates.renew(TX, STATE, 0)
    assert asked.works == [work for number, work in enumerate(first) if number not in (0, KINDS + 1)]
