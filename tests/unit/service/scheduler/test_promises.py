"""Places for jobs that others were stopped for, by example."""

from dataclasses import replace

from service.scheduler.policy import decide
from service.scheduler.state import State, Waiting
from tests.unit.service.scheduler.worlds import NOW, box, job, starts, state
from torchyard.policy import Policy

BIG = frozenset({"big"})


def choosy(number: int) -> Waiting:
    made = job(number)
    return replace(made, shape=replace(made.shape, labels=BIG))


def started(world: State) -> dict[str, str]:
    return starts(decide(world, NOW, Policy()))


def test_the_only_place_that_suits_one_is_left_to_it() -> None:
    nodes = box("a", gpus=1, labels=BIG), box("b", gpus=1)
    world = state(*nodes, job(1), choosy(2), promised={"j1": None, "j2": None})
    assert started(world) == {"j2": "a0", "j1": "b0"}


def test_where_not_all_find_a_place_the_first_has_it() -> None:
    world = state(box("a", gpus=1, labels=BIG), job(1), choosy(2), job(3), promised=dict.fromkeys(("j1", "j2", "j3")))
    assert started(world) == {"j1": "a0"}
    assert started(replace(world, boxes={**world.boxes, "b": box("b", gpus=1)})) == {"j1": "a0", "j3": "b0"}
