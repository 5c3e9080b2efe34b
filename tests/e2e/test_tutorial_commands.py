"""The command lines of docs/from-the-tutorials.md, each typed as it stands there against the real stack."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import pages, processes, stack
from tests.support.pages import Block
from tests.support.stack import Stack
from torchyard.network import ports
from torchyard.states import JobState

pytestmark = pytest.mark.e2e

REPOSITORY = Path(__file__).parents[2]
BLOCKS = pages.blocks(REPOSITORY / "docs" / "from-the-tutorials.md")
SETTING = next(block for block in BLOCKS if block.language == "python")
TRAININGS = [block for block in BLOCKS if block.follows]
SHELL = [block for block in BLOCKS if block.language == "sh"]
#: What is smaller here than on the page: one process, timed once. `test_strategies.py` compares it with ranks.
SMALLER = {"yard bench strategies": " --steps 1 --gpus 1 --no-open -- --repeats 1 --warm-up 0"}
#: What the page says that launchers give a rank. `tests/integration/docs` runs trainings off the queue, and
#: `test_own_scripts.py` has ranks meet that scripts of users start on it.
#: One write a line: ranks by hand share a pipe, where an unbuffered `print` of several words is torn apart.
WHO = """import os, sys
sys.stdout.write(" ".join(["rank", os.environ["LOCAL_RANK"], "of", os.environ["WORLD_SIZE"], *sys.argv[1:]]) + "\\n")
"""
LAUNCHERS = {"python -m torch.distributed.launch": " --local-rank={}", "torchrun": "", "yard run --gpus 2": ""}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with processes.unmarked(), stack.running(tmp_path_factory.mktemp("home"), slots=4) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a reader would type, with the examples and a recipe of their own."""
    made = tmp_path_factory.mktemp("reader")
    (made / "examples").symlink_to(REPOSITORY / "examples")
    (made / "recipe.yaml").symlink_to(REPOSITORY / "examples" / "strategies" / "ddp.yaml")
    return made


def script_above(block: Block) -> str:
    """The page's last training before this block, or its first, as the whole file that a reader would have."""
    training = next((each for each in reversed(TRAININGS) if each.line < block.line), TRAININGS[0])
    end = "if dist.is_initialized():\n    dist.destroy_process_group()\n"
    return "\n".join([SETTING.code, training.code, end])


def order(block: Block) -> tuple[bool, int]:
    """First what belongs to job 1 and its rerun, job 2: the page's other lines start jobs of their own."""
    return not re.search(r"^yard (submit|rerun)", block.code, re.MULTILINE), block.line


@pytest.mark.timeout(400)
@pytest.mark.parametrize("block", sorted(SHELL, key=order), ids=str)
def test_commands_do_what_they_say(block: Block, yard: Stack, folder: Path) -> None:
    before = {job.id for job in yard.client.jobs()}
    if "--rank 1" in block.code:
        together(block, yard, folder)
    else:
        for line in block.code.splitlines():
            given = next((given for launcher, given in LAUNCHERS.items() if line.startswith(launcher)), None)
            (folder / "train.py").write_text(script_above(block) if given is None else WHO)
            ended = started(line + SMALLER.get(line, ""), yard, folder)
            output, _ = ended.communicate(timeout=300)
            assert ended.returncode == 0, f"{line}\n{output}"
            if given is not None:
                printed = output + whole_log(yard, before)
                assert {f"rank {rank} of 2{given.format(rank)}" for rank in range(2)} <= {*printed.splitlines()}
            for job in yard.client.jobs():
                assert yard.client.wait(job.id, timeout_s=120).state is JobState.SUCCEEDED, yard.log(job)[-3000:]
    made = [job for job in yard.client.jobs() if job.id not in before]
    assert len(made) == len(re.findall(r"^yard (?:submit|run|rerun|bench)", block.code, re.MULTILINE))


def whole_log(yard: Stack, before: set[str]) -> str:
    """What all ranks of new jobs have printed: `yard run` shows one of them."""
    made = [job for job in yard.client.jobs() if job.id not in before]
    return "".join(yard.log(job, rank).decode() for job in made for rank in range(2))


def together(block: Block, yard: Stack, folder: Path) -> None:
    """Ranks that wait for each other, on this machine in place of two."""
    with ports.held("127.0.0.1") as port:
        lines = [line.replace("node0:29400", f"127.0.0.1:{port}") for line in block.code.splitlines()]
        ranks = [started(line, yard, folder) for line in lines]
        outputs = [rank.communicate(timeout=300)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    assert "strategy ddp  ranks 2" in outputs[0]


def started(line: str, yard: Stack, folder: Path) -> subprocess.Popen[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**yard.environment, "PATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        ["sh", "-c", line], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def test_files_are_brought(folder: Path) -> None:
    assert list((folder / "result").rglob("strategy.json"))
    assert (folder / "model.pt").exists()
