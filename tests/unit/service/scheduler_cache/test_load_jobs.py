"""The rule by which jobs are put back, beside the simulator's."""

from itertools import product
from typing import Any

import pytest

from service.db.records.spec import StoredSpec
from service.scheduler_cache.load_jobs import LoadedJob
from service.simulator.engine import simulate
from service.simulator.trace import SECOND, Cluster, parse
from torchyard.export import history
from torchyard.ids import JobId
from torchyard.spec.policy import Policy
from torchyard.states import JobState

SAID = ("auto", True, False)
POLICIES = (Policy(), Policy(no_restarts=("vision",)), Policy(restarts=0))


def loaded(spec: dict[str, Any], *, project_restarts: bool, attempt: int = 0) -> LoadedJob:
    fields = dict.fromkeys(LoadedJob._fields) | {"spec": StoredSpec(spec), "id": JobId("job-1"), "project": "vision"}
    state = {"state": JobState.QUEUED, "attempt": attempt, "restarts": 0, "project_restarts": project_restarts}
    return LoadedJob(**fields | state)


def live(spec: dict[str, Any], policy: Policy, *, project_restarts: bool) -> bool:
    """Tell if the live scheduler may put a new job of this spec back."""
    return loaded(spec, project_restarts=project_restarts).restartable(policy)


def simulated(spec: dict[str, Any], policy: Policy, *, project_restarts: bool) -> bool:
    """Tell if it is put back where history is simulated, for a job that comes half a minute later and takes two."""
    flags = history.flags(spec, saves=False, restarts=project_restarts, total_steps=10)
    rows = [
        f"{submit},{lasts},1,vision,{','.join(map(str, flags.values()))}" for submit, lasts in ((0, 3600), (30, 120))
    ]
    trace = parse(["submit_time,duration,num_gpus,project," + ",".join(flags), *rows])
    first, _ = simulate(trace, Cluster(nodes=1, gpus=1), policy, 30 * SECOND)
    return first.restarts > 0


@pytest.mark.parametrize("pinned", [False, True])
def test_the_simulator_puts_back_whom_the_live_scheduler_would(pinned: bool) -> None:
    found = set()
    for said, policy, project_restarts in product(SAID, POLICIES, (True, False)):
        spec = {"code": "snap-1", "launcher": "python", "restartable": said} | (
            {"preemptible": False} if pinned else {}
        )
        may = live(spec, policy, project_restarts=project_restarts)
        assert simulated(spec, policy, project_restarts=project_restarts) is may, (said, policy, project_restarts)
        found.add((said, may))
    tried = {True} if pinned else {True, "auto"}
    assert {(said, may) for said in tried for may in (True, False)} <= found


def test_a_job_without_a_trial_left_is_one_that_may_restart_all_the_same() -> None:
    spec = {"code": "snap-1", "launcher": "python"}
    spent = loaded(spec, project_restarts=True, attempt=2)
    assert (spent.restartable(Policy()), spent.restarts_allowed(Policy())) == (False, True)
    for never in (spent._replace(spec=StoredSpec({**spec, "live": "/x"})), loaded(spec, project_restarts=False)):
        assert not never.restarts_allowed(Policy())
    assert not spent.restarts_allowed(Policy(no_restarts=("vision",)))
