import pytest

from service.jobs.fit import on_one_node, wrong_field
from service.scheduler.model.nodes import NodeInfo, ResourceRequest, Slot

SLOTS = tuple(Slot(uuid=f"g{n}", index=n, memory=24) for n in range(2))
BOXES = [NodeInfo(name="a", slots=SLOTS, cpus=8, memory=64), NodeInfo(name="b", slots=(), cpus=64, memory=512)]


@pytest.mark.parametrize(
    ("resources", "field"),
    [
        (ResourceRequest(gpus=3), "resources.gpus"),
        (ResourceRequest(gpus=1, gpu_memory_min=80), "resources.gpu_memory_min"),
        (ResourceRequest(gpus=0, cpus=65), "resources.cpus"),
        (ResourceRequest(gpus=0, memory=513), "resources.memory"),
        (ResourceRequest(gpus=1, cpus=64), "resources"),
    ],
)
def test_the_field_that_is_too_much_is_named(resources: ResourceRequest, field: str) -> None:
    assert wrong_field(resources, BOXES) == field


def test_too_many_nodes_are_named() -> None:
    assert wrong_field(ResourceRequest(gpus=2), BOXES, 3) == "resources.nodes"
    assert wrong_field(ResourceRequest(gpus=1), BOXES, 2) == "resources.gpus"


def test_one_node_that_could_hold_all_is_advised() -> None:
    advice = on_one_node(ResourceRequest(gpus=1, cpus=4), BOXES, 2)
    assert advice is not None
    assert advice.message.startswith("node a alone could hold all of it")
    assert advice.message.endswith("take resources.nodes 1 and gpus 2")
    assert advice.params == {"advice": "one-node", "node": "a", "needed": 2}
    assert on_one_node(ResourceRequest(gpus=2), BOXES, 2) is None
    assert on_one_node(ResourceRequest(gpus=1), BOXES, 1) is None
