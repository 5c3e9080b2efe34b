import pytest

from service.scheduler.explain.idle_time import IdleTime
from service.simulator.comparison import Setting, compare
from service.simulator.engine import simulate
from service.simulator.exceptions import TraceError
from service.simulator.metrics import measure, standings
from service.simulator.policies import PRESETS
from service.simulator.trace import SECOND, Cluster
from tests.support.traces import job

ONE = Cluster(nodes=1, gpus=1)


def test_each_policy_comes_to_what_it_comes_to_alone_and_in_the_order_asked_for() -> None:
    jobs = [job(20 * number, 100 + 40 * (number % 3)) for number in range(60)]
    chosen = {name: PRESETS[name] for name in ("srtf", "fifo", "las")}
    found = compare(chosen, Setting(jobs=jobs, cluster=ONE))
    assert [result.title for result, _ in found] == ["srtf", "fifo", "las"]
    for result, _ in found:
        policy = PRESETS[result.title]
        idle = IdleTime()
        done = simulate(jobs, ONE, policy, policy.preemption_cost * SECOND, idle=idle)
        assert result.standings == standings(done, ONE)
        assert result.metrics == measure(done, ONE, result.standings, idle)


def test_what_goes_wrong_in_a_process_is_raised_here() -> None:
    with pytest.raises(TraceError, match="2 GPUs are more than there are"):
        compare({"fifo": PRESETS["fifo"]}, Setting(jobs=[job(0, 100, gpus=2)], cluster=ONE))
