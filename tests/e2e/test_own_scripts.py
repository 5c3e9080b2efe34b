"""`yard run` and `yard submit` as a user types them, with a script and an environment of the user's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import environments, wait
from tests.support.stack import YARD, Stack
from torchyard.api import Output

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = Path(__file__).parent / "scripts"


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environments.with_torch(tmp_path_factory.mktemp("user") / "venv")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with an example script, data that is not copied, and what must not travel."""
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "words.txt").write_text("from the data folder\n")
    (folder / ".gitignore").write_text("data/\nnotes.txt\n")
    (folder / "notes.txt").write_text("private")
    shutil.copy(EXAMPLES / "train_ddp.py", folder)
    return folder


def _yard(yard: Stack, venv: Path | None, project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = dict(yard.environment)
    environment.pop("VIRTUAL_ENV", None)
    if venv is not None:
        environment |= {"VIRTUAL_ENV": str(venv), "PATH": f"{venv / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(
        [*YARD, *words], cwd=project, env=environment, capture_output=True, text=True, timeout=200, check=False
    )


def test_a_ddp_script_has_its_log_its_metrics_and_its_checkpoints(yard: Stack, venv: Path, project: Path) -> None:
    """Typed with torchrun, whose ranks are then the queue's."""
    words = ["torchrun", "--standalone", "--nproc-per-node=2", "train_ddp.py", "--epochs", "2", "--samples", "512"]
    done = _yard(yard, venv, project, "run", "--", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    job = next(iter(yard.client.jobs()))
    assert (job.spec["launcher"], job.gpus) == ("torchrun", 2)
    assert job.spec["python"].startswith(str(venv))
    assert yard.log(job, 0)
    wait.until(lambda: yard.client.metrics(job.id).series, what="metrics")
    wait.until(lambda: yard.client.checkpoints(job.id), what="a checkpoint")


#: Starts real ranks with the command line and the environment that `mpirun` documents.
MPIRUN = """#!/bin/sh
count=$2; shift 2
for rank in $(seq 0 $((count - 1))); do
    OMPI_COMM_WORLD_SIZE=$count OMPI_COMM_WORLD_RANK=$rank "$@" & ranks="$ranks $!"
done
for rank in $ranks; do wait $rank || exit $?; done
"""
BY_HAND = "python -m torch.distributed.run --standalone --nproc-per-node=2 dist_url.py --dist-url env://"


@pytest.mark.parametrize(
    ("options", "words", "launcher"),
    [
        (
            "--gpus 2",
            "python dist_url.py --multiprocessing-distributed --dist-url {url} --world-size 1 --rank 0",
            "python",
        ),
        ("--gpus 2 --launcher none", BY_HAND, "none"),
        ("--gpus 2", "mpirun -np 2 python dist_url.py --dist-url {url}", "none"),
    ],
    ids=["spawn", "torchrun-by-hand", "mpirun"],
)
def test_ranks_meet_whoever_starts_them(
    yard: Stack, venv: Path, project: Path, options: str, words: str, launcher: str
) -> None:
    shutil.copy(SCRIPTS / "dist_url.py", project)
    program = venv / "bin" / "mpirun"
    program.write_text(MPIRUN)
    program.chmod(0o755)
    typed = words.format(url=(project / "meeting").as_uri()).split()
    done = _yard(yard, venv, project, "run", *options.split(), "--", *typed)
    job = next(iter(yard.client.jobs()))
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{yard.log(job, 0).decode()}"
    assert (job.spec["launcher"], job.gpus) == (launcher, 2)
    if launcher == "python":
        assert "launcher: python, because dist_url.py:" in done.stderr
        assert "launcher python, because dist_url.py:" in yard.client.events(job.id)[0].message
    names = ("met-0", "met-1")

    def brought() -> list[Output]:
        found = [each for each in yard.client.outputs(job.id) if each.name in names]
        return found if len(found) == len(names) else []

    for note in wait.until(brought, what="the note of each rank"):
        assert yard.client.download_output(job.id, note, project / "pulled").read_text() == "2 of 2"


def test_the_snapshot_holds_what_git_would_and_links_join_the_rest(yard: Stack, project: Path) -> None:
    words = ["sh", "-c", "ls -A; cat data/words.txt"]
    done = _yard(yard, None, project, "run", "--gpus", "0", "--launcher", "none", "--link", "data", "--", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    job = next(iter(yard.client.jobs()))
    log = yard.log(job, 0).decode()
    assert "from the data folder" in log
    assert "notes.txt" not in log


def test_link_alone_joins_in_what_is_not_copied_files_too(yard: Stack, tmp_path: Path) -> None:
    """A folder that holds links and nothing else."""
    (folder := tmp_path / "links").mkdir()
    (tmp_path / "far.sh").write_text("echo from afar\n")
    (folder / "near.sh").symlink_to(tmp_path / "far.sh")
    refused = _yard(yard, None, folder, "run", "--gpus", "0", "--", "./near.sh")
    assert "near.sh is a link out of the folder" in refused.stderr
    done = _yard(yard, None, folder, "run", "--gpus", "0", "--link", "near.sh", "--", "sh", "near.sh")
    assert (done.returncode, done.stdout) == (0, "from afar\n"), done.stderr


def test_a_missing_script_fails_before_anything_is_sent(yard: Stack, project: Path) -> None:
    before = [job.id for job in yard.client.jobs()]
    done = _yard(yard, None, project, "run", "--", "python", "absent.py")
    assert done.returncode != 0
    assert "absent.py" in done.stderr
    assert [job.id for job in yard.client.jobs()] == before


def test_the_exit_code_of_run_is_the_jobs_and_its_traceback_is_shown_once(yard: Stack, project: Path) -> None:
    failing = f"{sys.executable} -c 'raise ValueError(7)'; exit 9"
    done = _yard(yard, None, project, "run", "--gpus", "1", "--launcher", "none", "--", "sh", "-c", failing)
    assert done.returncode == 9
    assert done.stdout.count("ValueError: 7") == 1
    assert done.stdout.endswith("failed on rank 0: rank 0 exited with code 9\n")
