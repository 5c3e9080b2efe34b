"""`yard up` and the commands against it, as a person uses them."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.support import accounts
from tests.support.wait import until
from torchyard.client.client import Client
from torchyard.stack import instance

pytestmark = pytest.mark.e2e

YARD = [sys.executable, "-P", "-m", "torchyard.cli.main"]
#: Prints a line each 0.1 s, until the file that its argument names is there.
COUNT = 'i=0; while [ ! -e "$0" ]; do echo "line $i"; i=$((i+1)); sleep 0.1; done; echo "$i lines"'


@dataclass(frozen=True)
class Yard:
    """A home folder, and commands in it."""

    home: Path
    code: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in {"TORCHYARD_URL", "TORCHYARD_TOKEN"}}
        return {**kept, "TORCHYARD_HOME": str(self.home), "TORCHYARD_HEARTBEAT_S": "1"}

    def start(self, *words: str, **streams: int) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        return subprocess.Popen([*YARD, *words], env=self.environment, cwd=self.code, text=True, **pipes)

    def __call__(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*YARD, *words],
            env=self.environment,
            cwd=self.code,
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def state(self, job: str) -> str:
        """A job's state, asked for without a command, since tests ask often."""
        with Client() as client:
            return client.job(job).state.value

    def log(self, job: str) -> bytes:
        with Client() as client:
            return b"".join(client.logs(job))

    @contextmanager
    def up(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        process = self.start("up", "--port", "0", "--cpu-slots", "2", *words, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("ready http://127.0.0.1:"), line
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(60)
            process.stdout.close()


@pytest.fixture
def yard(short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    """An empty home, which is this process's too, and a folder with a script and modules of our own names."""
    monkeypatch.setenv("TORCHYARD_HOME", str(short_tmp / "home"))
    for name in ("TORCHYARD_URL", "TORCHYARD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    code = short_tmp / "code"
    code.mkdir()
    (code / "hello.py").write_text("import sys\nprint('hello', *sys.argv[1:])\nsys.exit(int(sys.argv[1]))\n")
    for name in ("service", "worker", "trainer"):
        (code / f"{name}.py").write_text("raise SystemExit('a module of the folder that yard was called in')\n")
    made = Yard(short_tmp / "home", code)
    yield made
    assert instance.is_free(made.home), "something of the stack is left"


def alive(home: Path) -> list[str]:
    """Processes that have the home folder in their command lines."""
    found = (" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"]))
    return [line for line in found if str(home) in line]


def test_commands_run_and_ctrl_c_leaves_nothing(yard: Yard) -> None:
    with yard.up("--stop-jobs") as up:
        refused = yard("up", code=1)
        assert f"already running in {yard.home} (process {up.pid}" in refused.stderr

        ran = yard("run", "--gpus", "0", "--", "python", "hello.py", "7", code=7)
        assert ran.stdout.startswith("hello 7\n")
        assert "job 1 code-hello submitted" in ran.stderr
        assert yard("wait", "1", code=7).stdout == ""
        assert yard("logs", "1").stdout == "hello 7\n"
        assert yard("run", "--gpus", "2", "--", "echo", "any program").stdout == "any program\n"

        listed = json.loads(yard("ls", "--json").stdout)
        assert [(job["number"], job["state"]) for job in listed] == [(2, "succeeded"), (1, "failed")]
        assert "exited with code 7" in yard("show", "1").stdout
        assert "2 of 2 free" in yard("nodes").stdout
        assert yard("token", "show").stdout.strip() == (yard.home / "admin.token").read_text().strip()
        assert yard("login").stdout.startswith("http://127.0.0.1:")

        assert_the_first_ctrl_c_leaves_the_job_and_the_second_cancels_it(yard, "3")
        assert_the_first_ctrl_c_leaves_the_job(yard, "4")

        up.send_signal(signal.SIGINT)
        assert up.wait(60) == 0
        assert up.stdout is not None
        assert up.stdout.read() == ""
    assert alive(yard.home) == []
    assert not list(yard.home.parent.glob("torchyard-*"))
    assert "yard up" in yard("ls", code=1).stderr
    assert stored(yard.home) == {1: "failed", 2: "succeeded", 3: "cancelled", 4: "cancelled"}


def stored(home: Path) -> dict[int, str]:
    """States of jobs, by number, as a stack that has ended has left them."""
    with closing(sqlite3.connect(home / "service" / "torchyard.db")) as database:
        return dict(database.execute("SELECT number, state FROM jobs"))


def begun(yard: Yard) -> subprocess.Popen[str]:
    """A `yard run` whose job has begun, after its first Ctrl-C."""
    run = yard.start("run", "--", "sh", "-c", "echo begun; sleep 600", stdin=subprocess.DEVNULL)
    assert run.stdout is not None
    assert run.stdout.readline() == "begun\n"
    run.send_signal(signal.SIGINT)
    return run


def assert_the_first_ctrl_c_leaves_the_job_and_the_second_cancels_it(yard: Yard, job: str) -> None:
    run = begun(yard)
    assert run.stderr is not None
    # Asked nothing in between: it listens for the second one for five seconds only.
    assert any("Ctrl-C again" in line for line in iter(run.stderr.readline, ""))
    run.send_signal(signal.SIGINT)
    more, _ = run.communicate(timeout=60)
    assert (run.returncode, more) == (130, ""), "what the job had said is not shown again"
    assert yard.state(job) == "cancelled"


def assert_the_first_ctrl_c_leaves_the_job(yard: Yard, job: str) -> None:
    run = begun(yard)
    _, told = run.communicate(timeout=60)
    assert run.returncode == 130, "so that `&& next` does not run"
    assert f"`yard logs -f {job}` follows it, `yard cancel {job}` stops it" in told
    assert yard.state(job) == "running"


@accounts.needs_root
def test_root_starts_a_stack_and_others_run_jobs_as_themselves(open_tmp: Path) -> None:
    """What README says to type, and nothing else."""
    (open_tmp / "code").mkdir()
    yard = Yard(open_tmp / "home", open_tmp / "code")
    with accounts.account() as bob, yard.up("--stop-jobs"):
        yard("users", "add", "bob", "--unix-user", bob.pw_name)
        token = json.loads(yard("token", "create", "laptop", "--user", "bob", "--json").stdout)["secret"]
        as_bob = {**yard.environment, "TORCHYARD_TOKEN": token}
        words = ["run", "--launcher", "none", "--", "sh", "-c", f"id -un; ls {yard.home}; exit 3"]
        done = subprocess.run(
            [*YARD, *words], env=as_bob, cwd=yard.code, text=True, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 3, done.stdout + done.stderr
        assert bob.pw_name in done.stdout.split()
        assert "Permission denied" in done.stdout


#: Counts on from its newest checkpoint, one each 0.5 s, until the file that its argument names is there.
RESUMES = """
import pathlib, sys, time
import torchyard

last = torchyard.restore()
step = int((last / "step").read_text()) + 1 if last else 0
print("from", step, flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    torchyard.report(step=step, loss=1 / (step + 1))
    with torchyard.checkpoint(step=step) as folder:
        (folder / "step").write_text(str(step))
    step += 1
    time.sleep(0.5)
print("done", flush=True)
"""


def crash(attempt: str) -> None:
    """Kill all processes of an attempt at once, the one that guards it too, which is known by its files."""
    for process in psutil.process_iter(["cmdline", "environ", "open_files"]):
        files = [file.path for file in process.info["open_files"] or ()]
        words = [*(process.info["cmdline"] or ()), *(process.info["environ"] or {}).values(), *files]
        if any(attempt in word for word in words):
            with suppress(psutil.NoSuchProcess):  # some end with those that were killed before
                process.kill()


def test_jobs_outlive_the_stack_and_a_backup_that_was_made_while_they_ran_brings_them_back(
    yard: Yard, tmp_path: Path
) -> None:
    """A killed stack gives its home to the next; one job ends with a crash then, and the others go on through it."""
    (yard.code / "resumes.py").write_text(RESUMES)
    gate, kept = tmp_path / "gate", tmp_path / "kept"
    with yard.up() as up:
        yard("run", "--detach", "--launcher", "python", "--", "python", "resumes.py", str(gate))
        yard("run", "--detach", "--", "sh", "-c", COUNT, str(gate))
        yard("run", "--detach", "--gpus", "0", "--", "sleep", "600")
        with Client() as client:
            until(lambda: any(each.state == "stored" for each in client.checkpoints("1")), what="a checkpoint")
            until(lambda: b"line 3" in yard.log("2"), what="the first lines")
            until(lambda: yard.state("3") == "running", what="the third job")
            said = yard("backup", str(kept)).stdout
            assert said.startswith(f"{kept}: 3 jobs")
            assert "already running" in yard("restore", str(kept), "--replace", code=1).stderr
            attempt = client.attempts("1")[0].id
        up.kill()
        up.wait()
    assert_the_next_stack_takes_the_jobs_over(yard)
    crash(attempt)
    shutil.rmtree(yard.home / "service")
    assert "restored: 3 jobs" in yard("restore", str(kept)).stdout
    with yard.up() as up, Client() as client:
        follower = yard.start("logs", "-f", "2")
        until(lambda: yard.state("2") == "running", what="the job's return")
        until(lambda: len(client.attempts("1")) > 1 and b"from " in yard.log("1"), what="the second attempt's log")
        service = next(each for each in psutil.Process(up.pid).children() if "service" in each.cmdline())
        service.kill()
        gate.touch()
        told, _ = follower.communicate(timeout=60)
        assert follower.returncode == 0
        yard("wait", "1")
        second = yard.log("1").split()
        assert int(second[1]) > 0, "it begins with a checkpoint of the backup"
        assert [[each.number for each in client.attempts(job)] for job in ("2", "3")] == [[1], [1]]
        lines = told.count("line ")
        assert told == "".join(f"line {n}\n" for n in range(lines)) + f"{lines} lines\n"
        yard("down", "--stop-jobs")
    assert alive(yard.home) == []
    assert stored(yard.home) == {1: "succeeded", 2: "succeeded", 3: "cancelled"}


def assert_the_next_stack_takes_the_jobs_over(yard: Yard) -> None:
    """It starts in the background, and ends without them."""
    detached = yard("up", "--detach", "--port", "0", "--cpu-slots", "2")
    assert detached.stdout.startswith("ready http://127.0.0.1:")
    assert detached.stdout.count("\n") == 1
    for job in ("1", "2", "3"):
        until(lambda job=job: yard.state(job) == "running", what="the job's return")  # type: ignore[misc]
    assert "jobs that run go on" in yard("down").stderr
    assert "no stack is running" in yard("down").stderr
