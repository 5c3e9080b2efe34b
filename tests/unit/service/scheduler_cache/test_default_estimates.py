from dataclasses import replace
from typing import cast

from sqlalchemy import Connection

from service.db.records.spec import StoredSpec
from service.estimation.forecasts import Estimator
from service.scheduler.model.jobs import Estimate, EstimateSource
from service.scheduler.model.state import SchedulerState
from service.scheduler_cache.default_estimates import KINDS, DefaultEstimates
from service.scheduler_cache.load_jobs import LoadedJob
from tests.unit.service.scheduler.worlds import job, node_info, state
from torchyard.ids import JobId

TX = cast("Connection", None)
STATE = cast("SchedulerState", None)


class Asked:
    """An estimator that notes which kinds it is asked about."""

    def __init__(self) -> None:
        self.works: list[str] = []
        #: A kind that takes ten times as long by now.
        self.longer = ""

    def of_history(self, _tx: object, key: object, _limit_us: object, _now: int) -> Estimate:
        self.works.append(str(key))
        median_us = 20 if str(key) == self.longer else 2
        return Estimate(p10_us=1, p50_us=median_us, p90_us=30, source=EstimateSource.HISTORY)


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


def test_a_changed_estimate_is_told_to_all_jobs_of_its_kind_and_to_no_others() -> None:
    asked = Asked()
    estimates = DefaultEstimates(cast("Estimator", asked))
    world = state(node_info(), *(job(number) for number in range(1, 4)))
    for number, kind in ((1, 7), (2, 7), (3, 8)):
        told = estimates.add(TX, row(kind)._replace(id=JobId(f"j{number}")), 0)
        world.put([replace(world.waiting[JobId(f"j{number}")], remaining=told)])
    asked.longer = asked.works[0]
    estimates.begin_round()
    estimates.renew(TX, world, 0)
    lengths = {name: one.remaining.p50_us for name, one in world.waiting.items() if one.remaining}
    assert lengths == {"j1": 20, "j2": 20, "j3": 2}
