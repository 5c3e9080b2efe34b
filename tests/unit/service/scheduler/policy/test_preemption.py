from service.scheduler.model.jobs import IneligibleReason
from service.scheduler.policy.decide import decide
from service.scheduler.policy.order import rank_jobs
from service.scheduler.policy.preemption import in_the_way
from tests.unit.service.scheduler.worlds import GIB, HOUR, MINUTE, NOW, job, known, node_info, running, state, stops
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


def test_no_more_are_stopped_for_a_part_of_a_gpu_than_it_needs() -> None:
    holders = [running(number, f"a{number}", priority=1, preemptible=True) for number in range(3)]
    part = job(9, gpu_share=10 * GIB, priority=2)
    world = state(node_info(gpus=3, knows_shares=True), *holders, part)
    assert len(stops(decide(world, NOW, Policy()))) == 1


def test_who_holds_no_gpu_is_not_stopped_for_one() -> None:
    helper = running(1, "", gpus=0, cpus=1, priority=0, preemptible=True)
    holder = running(2, "a0", priority=1, preemptible=True)
    world = state(node_info(gpus=1), helper, holder, job(9, priority=2))
    assert stops(decide(world, NOW, Policy())) == {"r2": "j9"}


def test_nobody_is_spared_for_as_long_as_the_clock_was_set_back() -> None:
    spared = running(1, "a0", priority=0, preemptible=True, since_us=NOW + HOUR, spared_until_us=NOW + HOUR + MINUTE)
    fresh = running(2, "a1", priority=0, preemptible=True, since_us=NOW + 1)
    world = state(node_info(gpus=2), spared, fresh, job(9, priority=2))
    assert stops(decide(world, NOW, Policy())) == {"r1": "j9"}
