from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from service.scheduler.explain.lack import counted, lack_of, reservable
from service.scheduler.model.nodes import NodeInfo, ResourceRequest
from tests.unit.service.scheduler.worlds import GIB, node_info, slot

names = st.sampled_from([frozenset[str](), frozenset({"a"}), frozenset({"a", "b"})])
nodes = st.builds(
    node_info,
    st.just("a"),
    st.integers(0, 3),
    labels=names,
    isolates=st.booleans(),
    cpus=st.integers(1, 4),
    memory=st.sampled_from([GIB, 8 * GIB]),
)
requests = st.builds(
    ResourceRequest,
    gpus=st.integers(0, 4),
    gpu_memory_min=st.sampled_from([0, 40 * GIB, 100 * GIB]),
    gpu_type=st.sampled_from(["", "h100"]),
    gpus_alone=st.booleans(),
    labels=names,
    isolated=st.booleans(),
    cpus=st.integers(0, 5),
    memory=st.sampled_from([0, GIB, 16 * GIB]),
    excluded_nodes=names,
)


@given(nodes, st.booleans(), requests)
def test_there_is_a_reason_exactly_where_a_node_could_not_hold_the_job(
    node: NodeInfo, slots: bool, asked: ResourceRequest
) -> None:
    info = replace(node, slots=tuple(replace(each, kind="cpu") for each in node.slots)) if slots else node
    lack = lack_of(info, asked)
    assert (lack is None) == info.could_hold(asked)
    assert lack is None or (lack.words and lack.params["lack"])


def test_devices_are_called_what_the_nodes_have() -> None:
    gpus = node_info("a", gpus=2)
    slots = replace(node_info("b"), slots=(replace(slot(0, "b"), kind="cpu"),))
    assert [counted(number, [gpus]) for number in (0, 1, 2)] == ["0 GPUs", "1 GPU", "2 GPUs"]
    assert [counted(number, [slots]) for number in (1, 2)] == ["1 CPU slot", "2 CPU slots"]
    assert counted(3, [gpus, slots]) == "3 devices"
    assert counted(1, []) == "1 GPU"
    assert [reservable(2, some) for some in ([gpus, slots], [slots])] == ["2 GPUs", "2 CPU slots"]
