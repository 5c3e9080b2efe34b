"""Stacks of an attempt's processes."""

from torchyard.wire.protocol import DescribedMessage, Message, Text


class Frame(DescribedMessage):
    """One call on a stack."""

    function: Text
    """Name of the function."""
    file: Text
    """Path of its file."""
    line: int
    """Line in the file; 0 where it is not known, as in native code."""
    native: bool = False
    """Whether it is a function of a shared library instead of Python."""


class ThreadStack(DescribedMessage):
    """The calls of one thread, the innermost first."""

    name: Text | None = None
    """The thread's name; null: it has none."""
    frames: list[Frame]
    """Its calls, the innermost first."""


class ProcessStack(DescribedMessage):
    """The stack of one process: a rank's own, or one that a rank has started."""

    pid: int
    """Process id on its node."""
    rank: int
    """The rank that it is, or belongs to."""
    main: bool
    """Whether it is the rank's own process."""
    command: Text
    """Its program and script; never the other arguments, which may hold tokens."""
    threads: list[ThreadStack] = []
    """The main thread comes first."""
    collective: Text | None = None
    """Function of `torch.distributed` that the main thread is in, if it is in one."""
    doing: Text | None = None
    """Else the job's own function that it is in, or ``data loading``."""
    place: Text | None = None
    """Line of the job's own code that this was called from: ``train.py:88``."""
    error: Text | None = None
    """Why the stacks could not be read, and the mend."""


class StackDump(Message):
    """``POST /agent/attempts/{id}/stacks``: what the processes of an attempt do on one node; 204."""

    serial: int
    #: The node's clock.
    at_us: int
    processes: list[ProcessStack]
    #: Processes left out, for there are too many.
    left_out: int = 0
