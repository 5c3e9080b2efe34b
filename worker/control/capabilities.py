"""Capabilities of this worker beyond those that all have."""

import functools
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Final

from torchyard.wire import Capability
from worker.shim import network

_PROBE = "import sys, torch.distributed as d; sys.exit(not (d.is_available() and d.is_mpi_available()))"
_PROBE_S = 120
#: Limits that the kernel may enforce or not.
LIMITS: Final = frozenset(
    {Capability.MEMORY_LIMIT, Capability.CPU_LIMIT, Capability.PROCESS_LIMIT, Capability.GPU_LIMIT}
)


def capabilities(
    python: Path = Path(sys.executable), *, one_trust_domain: bool = False, limits: Collection[Capability] = ()
) -> list[Capability]:
    """The words for a registration; `python` is the interpreter that recipes run with, `limits` are those enforced."""
    lacks = set(LIMITS.difference(limits))
    if one_trust_domain:
        lacks.add(Capability.UNIX_ACCOUNTS)
    if not isolates(python):
        lacks.add(Capability.NETWORK_ISOLATION)
    return [each for each in Capability if each not in lacks and (each is not Capability.MPI or has_mpi(python))]


@functools.cache
def isolates(python: Path) -> bool:
    """Return whether this worker can start jobs in network namespaces, by making one."""
    try:
        tried = subprocess.run([python, "-I", "-S", network.__file__], capture_output=True, check=False)
    except OSError:
        return False
    return tried.returncode == 0


@functools.cache
def has_mpi(python: Path) -> bool:
    """Return whether an interpreter's torch was built with MPI; torch is only asked where the machine has MPI."""
    if shutil.which("mpirun") is None:
        return False
    try:
        probed = subprocess.run([python, "-c", _PROBE], capture_output=True, timeout=_PROBE_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return probed.returncode == 0
