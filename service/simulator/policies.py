"""Policies that come with TorchYard: settings of the one policy, by name."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from service.simulator.knowledge import ORACLES
from torchyard.exceptions import PolicyError
from torchyard.files import policies
from torchyard.spec.policy import Order, Policy

#: No job is preempted.
_CALM: dict[str, object] = {"preemption": False, "time_slice": None}
#: A job that is ahead in the order preempts those behind, at any time.
_EAGER: dict[str, object] = {"preemption": False, "time_slice": 60, "min_run": 0}

PRESETS: Mapping[str, Policy] = MappingProxyType({
    "fifo": Policy.model_validate({"order": Order.FIFO, "backfill": False, **_CALM}),
    "fifo-backfill": Policy.model_validate({"order": Order.FIFO, **_CALM}),
    "sjf": Policy.model_validate({"order": Order.SJF, **_CALM}),
    "srtf": Policy.model_validate({"order": Order.SRTF, **_EAGER}),
    "las": Policy.model_validate({"order": Order.LAS, **_EAGER}),
    "fair": Policy(),
})  # fmt: skip


def named(name: str) -> Policy:
    """Return the preset of that name, or the policy in that file; raises PolicyError with how to correct it."""
    if name in PRESETS:
        return PRESETS[name]
    path = Path(name)
    if path.suffix in {".yaml", ".yml"} or path.exists():
        return policies.read(path)
    raise PolicyError(f"there is no policy {name!r}: write {', '.join(PRESETS)}, or a file such as policy.yaml")


def title(name: str, policy: Policy) -> str:
    """Return the policy's name for the output, which marks an oracle as one."""
    return f"{name} (oracle)" if policy.order in ORACLES else name
