"""The jobs that every queue is given. They leave what they have to say in a file, which costs each of them the same."""

import sys
from pathlib import Path


def clock(path: Path) -> list[str]:
    """Return a command that writes the time of its first instruction, in nanoseconds."""
    return ["/bin/sh", "-c", f"date +%s%N > {path}.part && mv {path}.part {path}"]


def torchrun(script: Path, moments: Path) -> list[str]:
    """Return a command that runs a script with two ranks on this machine."""
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return [*ranks, str(script), str(moments)]


def seconds(path: Path) -> float:
    """Return the time that a clock has written."""
    return int(path.read_text()) / 1e9
