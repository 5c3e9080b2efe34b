"""Stacks of an attempt's processes."""

from torchyard.wire.protocol import Message, Text


class Frame(Message):
    """One call on a stack."""

    function: Text
    file: Text
    #: 0 where it is not known, as in native code.
    line: int
    #: Not Python: a function of a shared library.
    native: bool = False


class ThreadStack(Message):
    """The calls of one thread, the innermost first."""

    name: Text | None = None
    frames: list[Frame]


class ProcessStack(Message):
    """What one process does: a rank's own, or one that a rank has started."""

    pid: int
    #: The rank that it is, or belongs to.
    rank: int
    #: Whether it is the rank's own process.
    main: bool
    #: Its program and script; never the other arguments, which may hold tokens.
    command: Text
    #: The main thread comes first.
    threads: list[ThreadStack] = []
    #: Function of `torch.distributed` that the main thread is in, if it is in one.
    collective: Text | None = None
    #: Else the job's own function that it is in, or ``data loading``.
    doing: Text | None = None
    #: Line of the job's own code that this was called from: ``train.py:88``.
    place: Text | None = None
    #: Why the stacks could not be read, and the mend.
    error: Text | None = None


class StackDump(Message):
    """``POST /agent/attempts/{id}/stacks``: what the processes of an attempt do on one node; 204."""

    serial: int
    #: The node's clock.
    at_us: int
    processes: list[ProcessStack]
    #: Processes left out, for there are too many.
    left_out: int = 0
