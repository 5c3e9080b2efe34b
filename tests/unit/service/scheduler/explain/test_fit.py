from service.scheduler.explain.fit import never_fits
from service.scheduler.model.nodes import ClosedReason, ResourceRequest, Slot
from tests.unit.service.scheduler.worlds import GIB, node_info, slot


def test_what_never_fits_says_why_for_each_node() -> None:
    infos = [node_info("a", gpus=2, isolates=False), node_info("b", gpus=8, cpus=4, closed=ClosedReason.DRAINING)]
    assert never_fits(ResourceRequest(gpus=8), infos) == []
    assert never_fits(ResourceRequest(gpus=8), []) == []
    assert never_fits(ResourceRequest(gpus=8, cpus=6), infos) == [
        "node a has 2 GPUs, the job needs 8",
        "node b has 4 CPU cores, the job needs 6",
    ]
    for resources, lack in (
        (ResourceRequest(gpus=1, gpu_memory_min=100 * GIB), "has 0 GPUs with at least 100.0 GiB, the job needs 1"),
        (ResourceRequest(gpus=1, gpu_share=100 * GIB), "has 0 GPUs with at least 100.0 GiB, the job needs 1"),
        (ResourceRequest(gpus=1, gpu_type="h100"), "has 0 GPUs of type h100, the job needs 1"),
        (ResourceRequest(gpus=1, labels=frozenset({"fast"})), "has no label fast"),
        (
            ResourceRequest(gpus=1, isolated=True),
            "cannot give a job a network of its own: its worker is not root, or too old, or the kernel refuses",
        ),
        (ResourceRequest(gpus=1, memory=512 * GIB), "has 256.0 GiB of memory, the job needs 512.0 GiB"),
    ):
        assert never_fits(resources, infos[:1]) == [f"node a {lack}"]


def test_a_job_of_several_gpus_never_fits_on_mig_instances() -> None:
    half = [Slot(uuid=f"MIG-{index}", index=1000 + index, memory=40 * GIB) for index in range(2)]
    mixed = node_info("a", slots=(slot(0), *half))
    assert never_fits(ResourceRequest(gpus=1), [mixed]) == []
    why = "the job needs 2: of MIG instances a job gets one on a node, since CUDA shows a process no more"
    assert never_fits(ResourceRequest(gpus=2), [mixed]) == [f"node a has 1 whole GPUs, {why}"]
    assert never_fits(ResourceRequest(gpus=2, gpu_memory_min=60 * GIB), [mixed]) == [
        "node a has 1 GPUs with at least 60.0 GiB, the job needs 2"
    ]


def test_too_few_nodes_never_fit() -> None:
    assert never_fits(ResourceRequest(gpus=2), [node_info("a"), node_info("b", gpus=1)], 2) == [
        "the job needs 2 nodes of one sort, and only 1 could hold a part of it",
        "node b has 1 GPUs, the job needs 2",
    ]
