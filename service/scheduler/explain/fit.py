"""Jobs that no box of these nodes could ever run. Pure."""

from collections.abc import Sequence

from service.scheduler.model.nodes import NodeInfo, ResourceRequest
from service.scheduler.policy.placement import enough, sorts


def never_fits(resources: ResourceRequest, infos: Sequence[NodeInfo], nodes: int = 1) -> list[str]:
    """Return why such a job could never run, with a reason for each node that could not hold it.

    Empty if it could run, or if there is no node yet.
    """
    able = [info for info in infos if info.lack(resources) is None]
    if not infos or enough(able, resources, nodes):
        return []
    lacks = [
        f"node {info.name} {info.lack(resources)}" for info in sorted(infos, key=lambda b: b.name) if info not in able
    ]
    return lacks if nodes == 1 else [_too_few(able, resources, nodes), *lacks]


def _too_few(able: Sequence[NodeInfo], resources: ResourceRequest, nodes: int) -> str:
    same = sorts(able, resources)
    found = " and ".join(f"{len(one)} with {one[0].word}" for one in same) if len(same) > 1 else str(len(able))
    return f"the job needs {nodes} nodes of one sort, and only {found} could hold a part of it"
