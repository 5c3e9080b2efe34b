"""Which nodes and which of their GPUs."""

from collections import Counter

from service.scheduler.explain.fit import never_fits
from service.scheduler.model.nodes import NodeInfo, ResourceRequest, Slot
from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import decide
from tests.unit.service.scheduler.worlds import GIB, NOW, job, node_info, running, slot, starts, state
from torchyard.spec.policy import Order, Policy

FIFO = Policy(order=Order.FIFO, preemption=False, time_slice=None)


def started(world: SchedulerState) -> dict[str, str]:
    return starts(decide(world, NOW, FIFO))


def test_neighbouring_gpus_of_the_fullest_node_that_fits() -> None:
    infos = [node_info("a", gpus=8), node_info("b", gpus=8), node_info("c", gpus=4)]
    held = [running(1, "b1"), running(2, "b4 b5"), running(3, "c0 c1 c2")]
    assert started(state(*infos, *held, job(1, gpus=2))) == {"j1": "b2 b3"}
    assert started(state(*infos, *held, job(1))) == {"j1": "c3"}


def test_cores_and_memory_bound_a_start() -> None:
    small = node_info(cpus=4, memory=16 * GIB)
    for big in (job(1, cpus=5), job(1, memory=17 * GIB), job(1, gpu_memory_min=81 * GIB), job(1, gpus=5)):
        assert started(state(small, big)) == {}
    world = state(small, job(1, cpus=3), job(2, cpus=1), job(3, cpus=1), job(4))
    assert set(started(world)) == {"j1", "j2", "j4"}


def test_jobs_without_gpus_run_beside_them_as_far_as_cores_go() -> None:
    infos = [node_info("a", gpus=1, cpus=2), node_info("b", gpus=1, cpus=1)]
    jobs = [job(number, gpus=0, cpus=1) for number in range(5)]
    found = decide(state(*infos, *jobs), NOW, FIFO)
    assert Counter(placement.node for one in found for placement in one.placements) == {"a": 2, "b": 1}


def test_type_memory_and_labels_of_what_is_asked_for() -> None:
    slots = (slot(0, name="NVIDIA A100", memory=40 * GIB), slot(1, name="NVIDIA H100 SXM"), slot(2, name="NVIDIA H100"))
    world = state(node_info("a", slots=slots), node_info("b", gpus=1, labels=frozenset({"fast"})))
    world.put([job(1, gpus=2, gpu_type="h100"), job(2, labels=frozenset({"fast"})), job(3, gpu_memory_min=80 * GIB)])
    assert started(world) == {"j1": "a1 a2", "j2": "b0"}


def test_a_node_that_runs_none_of_the_owners_jobs_is_left_to_others() -> None:
    infos = [node_info("a", gpus=1), node_info("b", gpus=1)]
    barred = {"user": "eve", "excluded_nodes": frozenset("a")}
    assert started(state(*infos, job(1, **barred), job(2), job(3))) == {"j1": "b0", "j2": "a0"}
    world = state(*infos, running(9, "b0"), job(1, **barred), job(2))
    assert started(world) == {"j2": "a0"}, "what is refused to one user is not refused to all"
    assert started(state(*infos, job(1, nodes=2, **barred))) == {}
    assert never_fits(ResourceRequest(gpus=1, excluded_nodes=frozenset("a")), infos[:1]) == [
        "node a runs no jobs of this user, for want of a UNIX account"
    ]
    assert never_fits(ResourceRequest(gpus=2, excluded_nodes=frozenset("a")), infos[:1]) == [
        "node a has 1 GPUs, the job needs 2"
    ], "what would be in the way with an account, too"


def test_a_job_gets_one_mig_instance_and_never_several() -> None:
    parts = tuple(Slot(uuid=f"MIG-{index}", index=1000 + index, memory=20 * GIB) for index in range(4))
    world = state(node_info(slots=parts), job(1, gpus=2), job(2), job(3, nodes=2, gpu_share=GIB), job(4))
    assert started(world) == {"j2": "MIG-0", "j4": "MIG-1"}
    whole = node_info(slots=(*parts, slot(0), slot(1)))
    assert started(state(whole, job(1, gpus=2), job(2))) == {"j1": "a0 a1", "j2": "MIG-0"}


def test_unusable_gpus_are_left_out() -> None:
    slots = (slot(0, unusable="stuck"), slot(1))
    assert started(state(node_info(slots=slots), job(1), job(2))) == {"j1": "a1"}


def test_shared_gpus_fill_the_fullest_that_has_room_and_never_one_that_is_taken() -> None:
    world = state(node_info(gpus=3), running(1, "a0"), running(2, "a1", gpu_share=30 * GIB))
    world.put([job(1, gpu_share=40 * GIB), job(2, gpu_share=20 * GIB), job(3, gpus=1), job(4, gpu_share=61 * GIB)])
    assert started(world) == {"j1": "a1", "j2": "a2"}
    world.remove("j2")
    assert started(world) == {"j1": "a1", "j3": "a2"}
    old = node_info("b", gpus=1, knows_shares=False)
    world = state(old, node_info("c", gpus=1), running(1, "c0"), job(1, gpu_share=GIB), job(2))
    assert started(world) == {"j2": "b0"}, "its worker is too old for shares, and nothing is kept there for them"
    two = state(node_info(gpus=2), job(1, gpus=2, gpu_share=50 * GIB), job(2, gpus=2, gpu_share=30 * GIB), job(3))
    assert started(two) == {"j1": "a0 a1", "j2": "a0 a1"}


def test_a_shared_gpu_is_whole_again_when_the_last_has_left() -> None:
    one, two = running(1, "a0", gpu_share=30 * GIB), running(2, "a0", gpu_share=30 * GIB)
    world = state(node_info(gpus=1), one, two, job(1))
    world.capacities()
    for name, expected in (("r1", {}), ("r2", {"j1": "a0"})):
        world.remove(name)
        assert started(world) == expected


def test_several_nodes_start_at_once_or_not_at_all() -> None:
    world = state(node_info("a"), node_info("b"), node_info("c", gpus=2), running(1, "a0 a1 a2"), running(2, "b3"))
    world.put([job(1, gpus=2, nodes=2)])
    assert started(world) == {"j1": "c0 c1 b0 b1"}
    world.put([job(1, gpus=2, nodes=3)])
    assert started(world) == {}


def test_no_job_is_split_that_does_not_say_so() -> None:
    assert started(state(node_info("a", gpus=2), node_info("b", gpus=2), job(1, gpus=4))) == {}


def cpu_box(node: str, slots: int) -> NodeInfo:
    return node_info(node, slots=tuple(Slot(uuid=f"{node}{i}", index=i, memory=0, kind="cpu") for i in range(slots)))


def test_ranks_on_gpus_and_ranks_on_cpus_are_not_mixed() -> None:
    infos = [node_info("a", gpus=2), cpu_box("b", 2), cpu_box("c", 4)]
    assert started(state(*infos, job(1, gpus=2, nodes=2))) == {"j1": "b0 b1 c0 c1"}
    assert started(state(*infos, job(1, gpus=0, nodes=3))) == {"j1": ""}
    assert never_fits(ResourceRequest(gpus=2), infos, 3) == [
        "the job needs 3 nodes of one sort, and only 1 with GPUs and 2 with CPU slots could hold a part of it"
    ]
