"""Real ranks in milliseconds: processes forked from a server that has torch loaded, joined over gloo.

``run(train, 2, recipe)`` calls ``train(recipe)`` in two processes whose environment is the one that torchrun makes.
The function must lie at the top of a module, and what it answers must be picklable.
"""

import gc
import multiprocessing
import os
import pickle
import runpy
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from tests.support import processes
from tests.support.wait import until

#: Long for what it is: the machine may be busy with other tests.
PATIENCE_S = 90
#: With what tests themselves load, which would take each rank longer than most have to do.
PRELOADED = [
    "torch",
    "torch._dynamo",
    "torch.distributed.checkpoint",
    "trainer.__main__",
    "sklearn.datasets",
    "pytest",
    "tests.support.training",
]
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(PRELOADED)


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Ranks that are running or have ended."""

    processes: list[ForkServerProcess]
    folder: Path

    def output(self, rank: int) -> str:
        """What the rank has written to stdout and stderr."""
        return (self.folder / f"output-{rank}.txt").read_text()

    def wait(self, seconds: float = PATIENCE_S) -> None:
        """Returns when all have ended, however; fails when they have not in time."""
        deadline = time.monotonic() + seconds
        for rank, process in enumerate(self.processes):
            process.join(max(0.0, deadline - time.monotonic()))
            assert process.exitcode is not None, f"rank {rank} has not ended: {self.output(rank)[-3000:]}"

    def results(self) -> list[Any]:
        """What each rank's function answered, by rank; fails when one of them raised or died."""
        self.wait()
        for rank, process in enumerate(self.processes):
            assert process.exitcode == 0, f"rank {rank} ended with {process.exitcode}: {self.output(rank)[-5000:]}"
        return [pickle.loads((self.folder / f"result-{rank}").read_bytes()) for rank in range(len(self.processes))]


@contextmanager
def started(
    function: Callable[..., Any],
    world: int,
    *arguments: Any,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Iterator[Ranks]:
    """The function in `world` ranks; they are killed when the block ends before them."""
    from torch.distributed import TCPStore

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=PATIENCE_S))
    with tempfile.TemporaryDirectory(prefix="ranks-") as name:
        folder = Path(name)
        made = [
            _CONTEXT.Process(  # type: ignore[attr-defined] # typeshed lacks it
                target=_child,
                args=(folder, _environment(rank, world, store.port, environment or {}), cwd, function, arguments),
            )
            for rank in range(world)
        ]
        with processes.unmarked(), _without_main():
            for process in made:
                process.start()
        try:
            yield Ranks(processes=made, folder=folder)
        finally:
            for process in made:
                process.kill()
                process.join()


def run(
    function: Callable[..., Any],
    world: int,
    *arguments: Any,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> list[Any]:
    """Calls the function in `world` ranks; answers what each returned, by rank (None for one that left by exit 0)."""
    with started(function, world, *arguments, environment=environment, cwd=cwd) as ranks:
        return ranks.results()


def meet(folder: str) -> None:
    """Wait, in a rank, for all others to be there: before anything that ends when one of them takes its time."""
    place = Path(folder)
    place.mkdir(exist_ok=True)
    (place / os.environ["RANK"]).touch()
    until(lambda: len([*place.iterdir()]) == int(os.environ["WORLD_SIZE"]), seconds=PATIENCE_S, what="all ranks")


def script(path: str, words: Sequence[str] = ()) -> None:
    """Runs a script in this rank as `python path words…` does."""
    sys.argv = [path, *words]
    runpy.run_path(path, run_name="__main__")


def _environment(rank: int, world: int, port: int, given: Mapping[str, str]) -> dict[str, str]:
    launcher = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        # The store is the parent's, as it is the agent's under torchrun: rank 0 starts none.
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "OMP_NUM_THREADS": "1",
    }
    return {**launcher, **given}


@contextmanager
def _without_main() -> Iterator[None]:
    """Children need not load the test runner's own main module."""
    main = sys.modules["__main__"]
    hidden = {name: main.__dict__.pop(name) for name in ("__file__", "__spec__") if name in main.__dict__}
    main.__dict__["__spec__"] = None
    try:
        yield
    finally:
        main.__dict__.update(hidden)


def _child(
    folder: Path, environment: dict[str, str], cwd: Path | None, function: Callable[..., Any], arguments: Any
) -> None:
    import torch

    # What the server has loaded stays; to look through it at the end costs each rank a fifth of a second.
    gc.freeze()
    # Else the rank's own children, such as loader processes, come from a server of its own that loads torch anew.
    multiprocessing.set_start_method(None, force=True)
    rank = environment["RANK"]
    output = os.open(folder / f"output-{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(environment)
    os.chdir(cwd or folder)
    torch.set_num_threads(1)
    result, code = None, 0
    try:
        result = function(*arguments)
    except SystemExit as left:
        code = int(left.code or 0)
    except BaseException:  # noqa: BLE001 (the test reads it)
        traceback.print_exc()
        code = 1
    (folder / f"result-{rank}").write_bytes(pickle.dumps(result))
    sys.stdout.flush()
    sys.exit(code)
