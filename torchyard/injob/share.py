"""A GPU that several jobs share: each process keeps to the job's part of its memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from torchyard.injob import layout


def limit(devices: Iterable[Any]) -> None:
    """Let torch give out no more than the job's part of these devices; a no-op where it has them alone.

    Not counted are other processes of the job on the same device, and what does not come from torch's allocator (a CUDA
    context, about half a gigabyte; NCCL's buffers).
    """
    part = os.environ.get(layout.GPU_SHARE)
    torch = sys.modules.get("torch")
    if not part or torch is None:
        return
    for device in devices:
        if device.type == "cuda":
            whole = torch.cuda.get_device_properties(device).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, int(part) / whole), device)


def of(models: Iterable[Any]) -> list[Any]:
    """The devices that modules have their parameters on."""
    return list({each.device for model in models if hasattr(model, "parameters") for each in model.parameters()})
