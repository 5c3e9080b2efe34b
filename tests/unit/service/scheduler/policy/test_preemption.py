from service.scheduler.model.jobs import IneligibleReason
from service.scheduler.policy.order import rank_jobs
from service.scheduler.policy.preemption import in_the_way
from tests.unit.service.scheduler.worlds import HOUR, MINUTE, NOW, job, known, node_info, running, state
from torchyard.spec.policy import Policy


def test_who_comes_before_all_that_wait_is_in_nobodys_way() -> None:
    short = running(1, "a0", remaining=known(MINUTE))
    long = running(2, "a1", remaining=known(9 * HOUR))
    held = job(4, ineligible=IneligibleReason.HELD)
    world = state(node_info(gpus=2), short, long, job(3, remaining=known(HOUR)), held)
    ranking = rank_jobs(world, NOW, Policy())
    assert not in_the_way(world, ranking, ["r1"])
    assert in_the_way(world, ranking, ["r1", "r2"])
    world = state(node_info(gpus=2), short, long, held)
    assert not in_the_way(world, rank_jobs(world, NOW, Policy()), ["r1", "r2"])
