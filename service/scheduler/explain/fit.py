"""Jobs that no box of these nodes could ever run. Pure."""

from collections.abc import Sequence

from service.scheduler.explain.lack import Lack, lack_of
from service.scheduler.model.nodes import NodeInfo, ResourceRequest
from service.scheduler.policy.placement import sorts
from torchyard.translatable import TranslatableText


def never_fits(resources: ResourceRequest, infos: Sequence[NodeInfo], nodes: int = 1) -> list[str]:
    """Return in words why such a job could never run; empty if it could, or if there is no node yet."""
    return [lack.words for lack in lacks(resources, infos, nodes)]


def lacks(resources: ResourceRequest, infos: Sequence[NodeInfo], nodes: int = 1) -> list[Lack]:
    """Return why such a job could never run, with a reason for each node that could not hold it.

    Empty if it could run, or if there is no node yet.
    """
    able = [info for info in infos if info.could_hold(resources)]
    if not infos or enough(able, resources, nodes):
        return []
    each = ((info.name, lack_of(info, resources)) for info in sorted(infos, key=lambda b: b.name))
    found = [_of_node(node, lack) for node, lack in each if lack is not None]
    return found if nodes == 1 else [_too_few(able, resources, nodes), *found]


def _of_node(node: str, lack: Lack) -> Lack:
    words = TranslatableText("lacking-node", "node {node} {lack}", node=node, lack=lack.words)
    return Lack(words=words, params={"node": node, **lack.params})


def _too_few(able: Sequence[NodeInfo], resources: ResourceRequest, nodes: int) -> Lack:
    same = sorts(able, resources)
    words = TranslatableText(
        "few-nodes",
        "the job needs {needed} nodes of one sort, and only {found} could hold a part of it",
        needed=nodes,
        found=_by_sort(len(same[0]), len(same[1])) if len(same) > 1 else len(able),
    )
    return Lack(words=words, params={"lack": "nodes", "needed": nodes, "found": max(map(len, same), default=0)})


def _by_sort(gpus: int, slots: int) -> TranslatableText:
    return TranslatableText("nodes-by-sort", "{gpus} with GPUs and {slots} with CPU slots", gpus=gpus, slots=slots)


def enough(infos: Sequence[NodeInfo], resources: ResourceRequest, nodes: int) -> bool:
    """Return whether these nodes, each of which has the capacity, are enough to spread the job over."""
    return any(len(same) >= nodes for same in sorts(infos, resources))
