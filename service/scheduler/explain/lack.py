"""Why a node could not hold a job even if it were empty, in words and as parameters of a reason. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from service.scheduler.model.nodes import NodeInfo, ResourceRequest
from torchyard.quantities import format_size


@dataclass(frozen=True, kw_only=True, slots=True)
class Lack:
    """Reason for which a job does not fit on a node even when it is empty."""

    words: str
    #: What the words are made of, with their kind as `lack`.
    params: Mapping[str, Any]


def lack_of(info: NodeInfo, resources: ResourceRequest) -> Lack | None:
    """Return why the job does not fit on the node even when it is empty; None if it would fit."""
    if info.name in resources.excluded_nodes:
        return Lack(words="runs no jobs of this user, for want of a UNIX account", params={"lack": "account"})
    if lacking := _lacking_features(info, resources) or _lacking_slots(info, resources):
        return lacking
    if resources.cpus > info.cpus:
        return _too_little("cpus", f"{info.cpus} CPU cores", info.cpus, resources.cpus)
    if resources.memory > info.memory:
        found, needed = format_size(info.memory), format_size(resources.memory)
        return _too_little("memory", f"{found} of memory", found, needed)
    return None


def _lacking_features(info: NodeInfo, resources: ResourceRequest) -> Lack | None:
    missing = sorted(resources.labels - info.labels)
    if missing:
        words = f"has no label {', '.join(missing)}"
        return Lack(words=words, params={"lack": "labels", "labels": missing})
    if resources.isolated and not info.isolates:
        words = "cannot give a job a network of its own: its worker is not root, or too old, or the kernel refuses"
        return Lack(words=words, params={"lack": "network"})
    return None


def _lacking_slots(info: NodeInfo, resources: ResourceRequest) -> Lack | None:
    if info.lacks_gpus(resources):
        return Lack(words="has no GPUs, and NCCL needs them", params={"lack": "no-gpus"})
    suitable = sum(slot.suits(resources) for slot in info.slots)
    if resources.gpus > suitable:
        few = resources.gpus > len(info.slots)
        what = f"{len(info.slots)} {info.word}" if few else f"{suitable} {info.word} {wanted(resources)}"
        sort = {} if few else wanted_params(resources)
        found = len(info.slots) if few else suitable
        return _too_little("slots", what, found, resources.gpus, unit=info.unit, **sort)
    return None


def _too_little(lack: str, what: str, found: float | str, needed: float | str, **more: str) -> Lack:
    words = f"has {what}, the job needs {needed}"
    return Lack(words=words, params={"lack": lack, "found": found, "needed": needed, **more})


def wanted(resources: ResourceRequest) -> str:
    """Return the type of GPU that a job asks for, in words; empty if any will do."""
    least = max(resources.gpu_memory_min, resources.gpu_share)
    words = [f"of type {resources.gpu_type}"] if resources.gpu_type else []
    return " ".join([*words, *([f"with at least {format_size(least)}"] if least else [])])


def wanted_params(resources: ResourceRequest) -> dict[str, str]:
    """Return the type and memory of the GPUs that a job asks for, as parameters of a reason."""
    least = max(resources.gpu_memory_min, resources.gpu_share)
    return {"type": resources.gpu_type, "memory": format_size(least) if least else ""}


def counted(number: float, infos: Iterable[NodeInfo]) -> str:
    """Return so many of what these nodes have, in words: GPUs, CPU slots, or devices where both are."""
    words = {info.word for info in infos}
    word = "devices" if len(words) > 1 else next(iter(words), "GPUs")
    return f"{number:.0f} {word.removesuffix('s') if number == 1 else word}"
