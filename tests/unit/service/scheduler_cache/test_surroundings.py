"""Jobs beside other surroundings: what is shared, and what is not."""

from service.scheduler.policy.decide import decide
from service.scheduler_cache.surroundings import beside
from tests.unit.service.scheduler.worlds import NOW, job, node_info, running, state
from torchyard.spec.policy import Policy


def test_jobs_beside_other_surroundings_are_neither_copied_nor_changed() -> None:
    world = state(node_info(), job(1, gpus=2), running(2, "a0"))
    kept = world.copy()
    kept.capacities()
    world.nodes, world.paused, world.promised["j1"] = {**world.nodes, "b": node_info("b")}, "power", None
    seen = beside(kept, world)
    assert seen.waiting is kept.waiting
    assert (seen.changes, seen.paused, list(seen.promised)) == (world.changes, "power", ["j1"])
    assert {node: len(capacity.free) for node, capacity in seen.capacities().items()} == {"a": 3, "b": 4}
    assert (list(kept.capacities()), kept.paused, list(kept.promised)) == (["a"], "", [])
    assert decide(seen, NOW, Policy()) == decide(world, NOW, Policy())
