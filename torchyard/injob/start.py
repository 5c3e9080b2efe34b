"""Moments of rank 0's start, for `yard show --timing`: torch imported, process group joined, first optimizer step.

Each is noted once, as a line in a file.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from typing import Any

from torchyard.injob import layout, place

#: Variable of torchrun's agent (`worker.shim.elastic`), which imports torch before any rank does.
AGENT = "TORCHYARD_AGENT_TIMES"


def note(name: str) -> None:
    """Note that a moment is now; nothing on other ranks than 0, and never an error."""
    attempt = place.current()
    if attempt is None or os.environ.get("RANK", "0") != "0" or is_agent():
        return
    path = os.path.join(attempt.path(layout.MARKS), layout.start_mark(0))
    line = "%s %d\n" % (name, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)
    except OSError:
        return


def is_agent() -> bool:
    """Return whether this process is torchrun's agent, which makes no step itself."""
    return AGENT in os.environ or "torch.distributed.run" in getattr(sys, "orig_argv", ())


def follow_process_group(distributed: Any) -> None:
    """Note when `torch.distributed.init_process_group` has returned for the first time."""
    original = distributed.init_process_group

    @functools.wraps(original)
    def init_process_group(*arguments: Any, **options: Any) -> Any:
        answer = original(*arguments, **options)
        if distributed.init_process_group is init_process_group:
            distributed.init_process_group = original
            note("joined")
        return answer

    distributed.init_process_group = init_process_group


def follow_optimizers(optimizer: Any) -> None:
    """Note the first step of any optimizer (`torch.optim.optimizer`); one that is compiled is not seen."""
    register = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if register is None:
        return
    torch = optimizer.torch
    seen: list[bool] = []

    def stepped(*_: Any) -> None:
        # It stays, and costs a tenth of a microsecond: hooks may not be taken away while they are called, and a step
        # that was compiled is compiled anew when they change.
        if not torch.compiler.is_compiling() and not seen:
            seen.append(True)
            note("stepped")

    register(stepped)
