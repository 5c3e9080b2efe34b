"""A process's title: the command line and the environment that others see of it in ``/proc``.

A forked process keeps those of the process that it was forked from, and jobs are found by them. So the server is
started with room in both, which its children write over. Of the environment only the placeholder is written to: the C
library and those who use it may still point at every other byte.
"""

import ctypes
from collections.abc import Mapping, Sequence

#: A variable whose place in the environment is written over, and bytes of it.
RESERVED, ENVIRONMENT_SPACE = "TORCHYARD_RESERVED", 16384
#: Bytes of the last argument, which make room for longer command lines.
COMMAND_SPACE = 16384
#: Variables that are shown: those that processes of jobs are found by. Others may be secret.
SHOWN = ("TORCHYARD_ATTEMPT_ID", "TORCHYARD_ATTEMPT_DIR", "TORCHYARD_JOB_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE")
#: Bytes that the numbers of a rank take at most.
_NUMBERS = 128
#: Fields of ``/proc/self/stat`` behind the name: addresses of arguments and environment, their ends beside them.
_ARGUMENTS, _ENVIRONMENT = 45, 47


class ProcessTitle:
    """The places of this process's command line and of its reserved variable; forked children inherit both."""

    def __init__(self) -> None:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        self._command, end = map(int, fields[_ARGUMENTS : _ARGUMENTS + 2])
        self._command_size = end - self._command
        self._environment, self._environment_size = _reserved(*map(int, fields[_ENVIRONMENT : _ENVIRONMENT + 2]))

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Return whether what is `SHOWN` of an environment has room; whatever ranks are told besides has, then."""
        return len(_joined(_shown(environment))) + _NUMBERS <= self._environment_size

    def show(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Show this command line, cut where it is too long, and of the environment what is `SHOWN`."""
        _fill(self._environment, _joined(_shown(environment)), self._environment_size)
        _fill(self._command, _joined(command), self._command_size)


def _shown(environment: Mapping[str, str]) -> list[str]:
    return [f"{name}={environment[name]}" for name in SHOWN if name in environment]


def _fill(address: int, content: bytes, size: int) -> None:
    """Write over a place; its last byte stays NUL, by which the kernel knows that nothing was moved from there."""
    ctypes.memmove(address, content[: size - 1].ljust(size, b"\0"), size)


def _reserved(start: int, end: int) -> tuple[int, int]:
    """Address and size of the reserved variable in an environment."""
    place = ctypes.string_at(start, end - start).find(f"{RESERVED}=".encode())
    if start == 0 or place < 0:
        raise ValueError("this kernel does not tell where the environment lies")
    return start + place, len(ctypes.string_at(start + place))


def _joined(words: Sequence[str]) -> bytes:
    return b"".join(word.encode(errors="surrogateescape") + b"\0" for word in words)
