"""What is executed: the command line of a job's main process."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchyard.spec import JobSpec, Launcher

_PYTHON = frozenset({"python", "python3"})
#: Options of the interpreter that take the next word with them.
_TAKES_WORD = frozenset({"-W", "-X", "--check-hash-based-pycs"})


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Interpreters and our own files, as absolute paths."""

    #: The worker's interpreter, which runs wrapper and recipes.
    worker: Path
    #: The job's interpreter.
    job: Path
    #: ``worker/rank.py``.
    rank: Path


@dataclass(frozen=True, kw_only=True)
class Places:
    """Folders and files of the attempt that appear in a command line."""

    logs: Path
    marks: Path
    cwd: Path
    #: The recipe as JSON, when the job is one.
    recipe: Path


def python_arguments(command: Sequence[str]) -> tuple[str, ...]:
    """A Python command without the interpreter's name: ``python train.py`` is ``train.py``."""
    return tuple(command[1:] if command[0] in _PYTHON else command)


def script(arguments: Sequence[str]) -> str | None:
    """The script among the interpreter's arguments; None for ``-m module`` and ``-c code``."""
    words = iter(arguments)
    for word in words:
        if not word.startswith("-"):
            return word
        if word.startswith(("-m", "-c")) or word == "-":
            return None
        if word in _TAKES_WORD:
            next(words, None)
    return None


def main_process(spec: JobSpec, programs: Programs, places: Places) -> list[str]:
    """The command line that the shim executes."""
    if spec.recipe is not None:
        trainer = [str(programs.worker), "-P", "-u", "-m", "trainer", str(places.recipe)]
        return _torchrun(programs.worker, spec.world_size, programs, places, trainer)
    command = spec.command or ()
    if spec.launcher is Launcher.NONE:
        return list(command)
    ranked = [str(programs.job), "-u", *python_arguments(command)]
    if spec.launcher is Launcher.PYTHON:
        return ranked
    return _torchrun(programs.job, spec.world_size, programs, places, ranked)


def _torchrun(agent: Path, world_size: int, programs: Programs, places: Places, ranked: list[str]) -> list[str]:
    torchrun = [str(agent), "-m", "torch.distributed.run", "--standalone", "--nnodes=1"]
    torchrun += [f"--nproc-per-node={world_size}", "--max-restarts=0", "--no-python"]
    wrapper = [str(programs.worker), "-I", "-S", str(programs.rank)]
    return [*torchrun, *wrapper, str(places.logs), str(places.marks), str(places.cwd), "--", *ranked]
