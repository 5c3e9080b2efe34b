from dataclasses import replace

from service.scheduler.model.nodes import counted
from tests.unit.service.scheduler.worlds import node_info, slot


def test_devices_are_called_what_the_nodes_have() -> None:
    gpus = node_info("a", gpus=2)
    slots = replace(node_info("b"), slots=(replace(slot(0, "b"), kind="cpu"),))
    assert [counted(number, [gpus]) for number in (0, 1, 2)] == ["0 GPUs", "1 GPU", "2 GPUs"]
    assert [counted(number, [slots]) for number in (1, 2)] == ["1 CPU slot", "2 CPU slots"]
    assert counted(3, [gpus, slots]) == "3 devices"
    assert counted(1, []) == "1 GPU"
