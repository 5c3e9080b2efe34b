"""Why a node could not hold a job even if it were empty, in words and as parameters of a reason. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from service.scheduler.model.nodes import NodeInfo, ResourceRequest
from torchyard.quantities import format_size
from torchyard.translatable import TranslatableText


@dataclass(frozen=True, kw_only=True, slots=True)
class Lack:
    """Reason for which a job does not fit on a node even when it is empty."""

    words: str
    #: What the words are made of, with their kind as `lack`.
    params: Mapping[str, Any]


def lack_of(info: NodeInfo, resources: ResourceRequest) -> Lack | None:
    """Return why the job does not fit on the node even when it is empty; None if it would fit."""
    if lacking := _lacking_features(info, resources) or _lacking_slots(info, resources):
        return lacking
    if resources.cpus > info.cpus:
        words = TranslatableText(
            "few-cores", "has {found} CPU cores, the job needs {needed}", found=info.cpus, needed=resources.cpus
        )
        return _too_little("cpus", words)
    if resources.memory > info.memory:
        found, needed = format_size(info.memory), format_size(resources.memory)
        words = TranslatableText(
            "little-memory", "has {found} of memory, the job needs {needed}", found=found, needed=needed
        )
        return _too_little("memory", words)
    if info.name in resources.excluded_nodes:
        words = TranslatableText("lacks-account", "runs no jobs of this user, for want of a UNIX account")
        return Lack(words=words, params={"lack": "account"})
    return None


def _lacking_features(info: NodeInfo, resources: ResourceRequest) -> Lack | None:
    missing = sorted(resources.labels - info.labels)
    if missing:
        words = TranslatableText("lacks-labels", "has no label {labels}", labels=tuple(missing))
        return Lack(words=words, params={"lack": "labels", "labels": missing})
    if resources.isolated and not info.isolates:
        words = TranslatableText(
            "lacks-network",
            "cannot give a job a network of its own: its worker is not root, or too old, or the kernel refuses",
        )
        return Lack(words=words, params={"lack": "network"})
    return None


def _lacking_slots(info: NodeInfo, resources: ResourceRequest) -> Lack | None:
    if info.lacks_gpus(resources):
        words = TranslatableText("lacks-gpus", "has no GPUs, and NCCL needs them")
        return Lack(words=words, params={"lack": "no-gpus"})
    suitable = sum(slot.suits(resources) for slot in info.slots)
    if resources.gpus > suitable:
        if suitable < sum(slot.suits(replace(resources, gpus=1)) for slot in info.slots):
            return _too_little("mig", _few_whole(suitable, resources.gpus))
        if resources.gpus > len(info.slots):
            return _too_little("slots", _few(info.unit, len(info.slots), resources.gpus), unit=info.unit)
        words = _few_of(info.unit, suitable, resources.gpus, wanted(resources))
        return _too_little("slots", words, unit=info.unit, **wanted_params(resources))
    return None


def _few_whole(found: int, needed: int) -> TranslatableText:
    return TranslatableText(
        "few-whole-gpus",
        "has {found} whole GPUs, the job needs {needed}: of MIG instances a job gets one on a node, since CUDA shows a "
        "process no more",
        found=found,
        needed=needed,
    )


def _few(unit: str, found: int, needed: int) -> TranslatableText:
    if unit == "gpu":
        return TranslatableText("few-gpus", "has {found} GPUs, the job needs {needed}", found=found, needed=needed)
    return TranslatableText("few-slots", "has {found} CPU slots, the job needs {needed}", found=found, needed=needed)


def _few_of(unit: str, found: int, needed: int, sort: str) -> TranslatableText:
    if unit == "gpu":
        return TranslatableText(
            "few-gpus-of", "has {found} GPUs {sort}, the job needs {needed}", found=found, sort=sort, needed=needed
        )
    return TranslatableText(
        "few-slots-of", "has {found} CPU slots {sort}, the job needs {needed}", found=found, sort=sort, needed=needed
    )


def _too_little(lack: str, words: TranslatableText, **more: str) -> Lack:
    found, needed = words.params["found"], words.params["needed"]
    return Lack(words=words, params={"lack": lack, "found": found, "needed": needed, **more})


def wanted(resources: ResourceRequest) -> str:
    """Return the type of GPU that a job asks for, in words; empty if any will do."""
    least = max(resources.gpu_memory_min, resources.gpu_share)
    model, memory = resources.gpu_type, format_size(least)
    if model and least:
        return TranslatableText("gpu-type-memory", "of type {type} with at least {memory}", type=model, memory=memory)
    if model:
        return TranslatableText("gpu-type", "of type {type}", type=model)
    return TranslatableText("gpu-memory", "with at least {memory}", memory=memory) if least else ""


def wanted_params(resources: ResourceRequest) -> dict[str, str]:
    """Return the type and memory of the GPUs that a job asks for, as parameters of a reason."""
    least = max(resources.gpu_memory_min, resources.gpu_share)
    return {"type": resources.gpu_type, "memory": format_size(least) if least else ""}


def counted(number: float, infos: Iterable[NodeInfo]) -> str:
    """Return so many of what these nodes have, in words: GPUs, CPU slots, or devices where both are."""
    words = {info.word for info in infos}
    word = "devices" if len(words) > 1 else next(iter(words), "GPUs")
    return f"{number:.0f} {word.removesuffix('s') if number == 1 else word}"


def reservable(number: int, infos: Iterable[NodeInfo]) -> str:
    """Return so many reserved devices in words: GPUs, or CPU slots where no node has any GPU."""
    found = list(infos)
    return counted(number, [info for info in found if info.unit == "gpu"] or found)
