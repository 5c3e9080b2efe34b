"""Real ranks under torchrun, with gloo and one thread each."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.attempt import clean_environment

#: Long for what it is: the machine may be busy with other tests.
PATIENCE_S = 90


def command(program: Sequence[str], ranks: int) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *program]


@contextmanager
def started(
    program: Sequence[str], cwd: Path, environment: dict[str, str], *, ranks: int = 2
) -> Iterator[subprocess.Popen[str]]:
    """The program under torchrun; its output goes to ``output.txt`` in `cwd`."""
    given = clean_environment(OMP_NUM_THREADS="1", PYTHONPATH=str(Path(__file__).parents[2]), **environment)
    with (cwd / "output.txt").open("w") as output:
        child = subprocess.Popen(
            command(program, ranks), cwd=cwd, env=given, stdout=output, stderr=subprocess.STDOUT, text=True
        )
        try:
            yield child
            assert child.wait(PATIENCE_S) == 0, (cwd / "output.txt").read_text()[-5000:]
        finally:
            child.terminate()
            child.wait(PATIENCE_S)


def run(program: Sequence[str], cwd: Path, environment: dict[str, str], *, ranks: int = 2) -> str:
    """Runs the program to its end, which must be good; answers its output."""
    with started(program, cwd, environment, ranks=ranks):
        pass
    return (cwd / "output.txt").read_text()
