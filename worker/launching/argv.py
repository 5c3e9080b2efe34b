"""The command line of a job's main process."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchyard.analysis.commands import python_program
from torchyard.spec import JobSpec, Launcher
from worker.launching.rendezvous import NodeRendezvous

_PYTHON = frozenset({"python", "python3"})


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Interpreters and our own files, as absolute paths."""

    #: The worker's interpreter, which runs wrapper and recipes.
    worker: Path
    #: The job's interpreter.
    job: Path
    #: ``worker/shim/rank.py``.
    rank: Path
    #: ``worker/shim/elastic.py``.
    elastic: Path


@dataclass(frozen=True, kw_only=True)
class AttemptPaths:
    """Folders and files of the attempt that appear in a command line."""

    logs: Path
    marks: Path
    cwd: Path
    #: The recipe as JSON, when the job is one.
    recipe: Path
    #: Where the ranks of several nodes meet; None on one node.
    rendezvous: NodeRendezvous | None = None


def python_arguments(command: Sequence[str]) -> tuple[str, ...]:
    """A Python command without the interpreter's name: ``python train.py`` is ``train.py``."""
    return tuple(command[1:] if command[0] in _PYTHON else command)


def main_process(spec: JobSpec, programs: Programs, places: AttemptPaths, local_rank: str | None = None) -> list[str]:
    """The command line that the shim executes.

    `local_rank` is the option by which each rank's program is told its number on the node, if it takes one.
    """
    if spec.recipe is not None:
        trainer = [str(programs.worker), "-P", "-u", "-m", "trainer", str(places.recipe)]
        return _torchrun(programs.worker, spec.local_world_size, programs, places, trainer)
    command = spec.command or ()
    if spec.launcher is Launcher.NONE:
        return list(command)
    arguments = python_arguments(command)
    interpreter = [str(programs.job), "-u"]
    ranked = [*interpreter, *arguments]
    if spec.launcher is Launcher.PYTHON:
        return ranked
    own = len(interpreter) + python_program(arguments).own
    told = [] if local_rank is None else [local_rank, str(own)]
    return _torchrun(programs.job, spec.local_world_size, programs, places, ranked, told)


def _torchrun(
    agent: Path,
    local_world_size: int,
    programs: Programs,
    places: AttemptPaths,
    ranked: list[str],
    told: Sequence[str] = (),
) -> list[str]:
    torchrun = [str(agent), *_agent(programs.elastic, places.rendezvous)]
    torchrun += [f"--nproc-per-node={local_world_size}", "--max-restarts=0", "--no-python"]
    wrapper = [str(programs.worker), "-I", "-S", str(programs.rank)]
    return [*torchrun, *wrapper, str(places.logs), str(places.marks), str(places.cwd), *told, "--", *ranked]


def _agent(elastic: Path, rendezvous: NodeRendezvous | None) -> list[str]:
    """Return the words for the elastic agent: on one node ours, which keeps to itself; on several torchrun's own.

    There it has a static rendezvous, as c10d hands out node ranks of its own.
    """
    if rendezvous is None:
        return [str(elastic)]
    return [
        "-m",
        "torch.distributed.run",
        f"--nnodes={rendezvous.nodes}",
        f"--node-rank={rendezvous.node_rank}",
        "--rdzv-backend=static",
        f"--master-addr={rendezvous.address}",
        f"--master-port={rendezvous.port}",
    ]
