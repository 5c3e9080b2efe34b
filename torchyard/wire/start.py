"""Start of an attempt, moment by moment, as its node has seen it."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from torchyard.wire.protocol import DescribedMessage, Message, Text

_MOST = 2**62


class StartMark(StrEnum):
    """Moment of a start on a node, in the order in which they come."""

    #: The node is about to claim the attempt, and has.
    CLAIMING = "claiming"
    CLAIMED = "claimed"
    #: Folder, code and environment are there.
    PREPARED = "prepared"
    #: The shim runs.
    SHIM = "shim"
    #: The first instruction of the job's main process.
    STARTED = "started"
    #: The elastic agent (torchrun) runs, and has imported PyTorch.
    AGENT = "agent"
    AGENT_IMPORTED = "agent-imported"
    #: The wrapper of rank 0 runs, and has started its program.
    RANK = "rank"
    PROGRAM = "program"
    #: Rank 0 has imported torch, joined the process group, made an optimizer step.
    TORCH = "torch"
    JOINED = "joined"
    STEPPED = "stepped"


_KNOWN = frozenset(StartMark)


def _known(marks: Any) -> Any:
    """Leave out what a newer node marks besides, and what is no time."""
    if not isinstance(marks, dict):
        return marks
    return {name: at for name, at in marks.items() if name in _KNOWN and isinstance(at, int) and -_MOST < at < _MOST}


class PreloadedModules(DescribedMessage):
    """Modules besides PyTorch that a job found loaded, since earlier ones have imported them."""

    packages: list[Text]
    """Their packages, in the order of import."""
    modules: int = Field(ge=0, lt=1_000_000)
    """How many modules there are, with all that they have imported."""
    seconds: float = Field(ge=0, lt=1_000_000)
    """How long their import took where they were loaded: about what a job saves that imports all of them."""


class ColdCode(StrEnum):
    """Reasons for a cold start that are known."""

    #: Warm start is off on the node.
    OFF = "off"
    #: No fork server had the environment yet, did not answer, or has forked what could not be used.
    NOT_YET = "not-yet"
    SILENT = "silent"
    REFUSED = "refused"
    #: The interpreter cannot be shared.
    UNFIT = "unfit"
    #: The spec says `warm_start: false`.
    SPEC = "spec"
    #: Another account than the worker's, with a network of its own, or on a node without cgroups.
    OWN_NETWORK = "own-network"
    NO_CGROUPS = "no-cgroups"
    SEVERAL_NODES = "several-nodes"
    #: `launcher: none` starts its command as it is.
    BARE_COMMAND = "bare-command"
    COMMAND_LINE = "command-line"
    #: Rank 0 was forked, and executed its program after all (`worker.forkserver.program`).
    NOT_PYTHON = "not-python"
    NO_SOURCE = "no-source"
    UNREADABLE = "unreadable"
    OWN_MODULE = "own-module"
    TOO_LARGE = "too-large"
    SETS_TORCH = "sets-torch"
    SETS_VARIABLE = "sets-variable"


class NodeStart(Message):
    """``POST /agent/attempts/{id}/start``, and a part of `Started` and `Result`: 204. It may come again, with more."""

    #: The node's clock when it heard of the attempt.
    heard_us: int
    #: The service's clock when it published the message that the node heard; None: a heartbeat's answer told of it.
    published_us: int | None = None
    #: Microseconds from then until each mark, by a clock that nobody sets.
    marks: Annotated[dict[StartMark, int], BeforeValidator(_known)] = {}
    #: Forked from a server that had PyTorch loaded; None: it has not begun.
    warm: bool | None = None
    #: Why it was not, or not in all of its processes.
    cold_reason: Text | None = None
    #: Of `ColdCode`, and words that only a newer service knows; None: an older node.
    cold_code: Text | None = None
    #: What that names, such as a module, or what another program said of it.
    cold_said: Text | None = None
    preloaded: PreloadedModules | None = None
