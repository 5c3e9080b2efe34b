"""Commands that start processes by a launcher of their own: ``torchrun …``, ``accelerate launch …``, ``mpirun …``.

What torchrun is told here the queue decides itself: those options are taken off and the script is left. The others run
as they are typed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchyard.analysis.commands import PYTHON_WORD, python_program
from torchyard.spec import Launcher

_TORCHRUN_MODULES = {
    "torch.distributed.run": Launcher.TORCHRUN,
    "torch.distributed.launch": Launcher.LAUNCH,
}
_OTHERS = frozenset({"accelerate", "deepspeed", "horovodrun", "mpirun", "mpiexec", "srun", "colossalai", "composer"})
#: torchrun's options that take a value: the queue sets them, or they are about a rendezvous and logs of its own.
#: Source: https://docs.pytorch.org/docs/stable/elastic/run.html
_WITH_VALUE_WORDS = (
    "nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts monitor-interval start-method "
    "role log-dir redirects tee local-ranks-filter node-rank master-addr master-port local-addr logs-specs "
    "numa-binding event-log-handler shutdown-timeout"
)
_WITH_VALUE = frozenset(_WITH_VALUE_WORDS.split())
_FLAGS = frozenset({"standalone", "use-env", "run-path", "duplicate-stdout-filters", "duplicate-stderr-filters"})
_SHORT = {"-r": "redirects", "-t": "tee"}


@dataclass(frozen=True, kw_only=True)
class LaunchCommand:
    """Command without its own launcher, and what that launcher was told."""

    command: tuple[str, ...]
    launcher: Launcher
    left_out: tuple[str, ...] = ()
    """Words that the queue stands in for."""
    processes: int | None = None
    """How many it asks for on each node."""
    nodes: int = 1


def by_hand(words: Sequence[str]) -> str | None:
    """The launcher that a command starts by itself, as it is typed; None if it starts none."""
    first = Path(words[0]).name
    if first in _OTHERS or first == "torchrun":
        return first
    if PYTHON_WORD.fullmatch(first):
        module = python_program(words[1:]).module
        return f"-m {module}" if module in _TORCHRUN_MODULES or module in _OTHERS else None
    return None


def understand(words: Sequence[str]) -> LaunchCommand | None:
    """The command without its launcher where that is torchrun, else as it is; None where it has none."""
    if (found := by_hand(words)) is None:
        return None
    if found == "torchrun":
        return _torchrun(words, 1, Launcher.TORCHRUN) or _as_it_is(words)
    known = _TORCHRUN_MODULES.get(found.removeprefix("-m "))
    if known is None:
        return _as_it_is(words)
    return _torchrun(words, 1 + python_program(words[1:]).own, known) or _as_it_is(words)


def _as_it_is(words: Sequence[str]) -> LaunchCommand:
    return LaunchCommand(command=tuple(words), launcher=Launcher.NONE)


def _torchrun(words: Sequence[str], start: int, launcher: Launcher) -> LaunchCommand | None:
    """None for options that are not known, and for a program that is no Python."""
    given: dict[str, str] = {}
    index, interpreter = start, ["python"]
    while index < len(words) and words[index].startswith("-"):
        name, equals, value = words[index].partition("=")
        option = _SHORT.get(name, name.lstrip("-").replace("_", "-"))
        if option in {"m", "module"} and not equals:
            interpreter, index = ["python", "-m"], index + 1
            break
        if option in _WITH_VALUE and not equals:
            value, index = "".join(words[index + 1 : index + 2]), index + 1
        elif option not in _WITH_VALUE | _FLAGS:
            return None
        given[option] = value
        index += 1
    if index >= len(words):
        return None
    if "use-env" in given:
        launcher = Launcher.TORCHRUN
    return LaunchCommand(
        command=(*interpreter, *words[index:]),
        launcher=launcher,
        left_out=tuple(words[:index]),
        processes=_number(given.get("nproc-per-node", "")),
        nodes=_number(given.get("nnodes", "1").partition(":")[2] or given.get("nnodes", "1")) or 1,
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
