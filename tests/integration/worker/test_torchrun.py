"""The real torchrun: each rank has its own log and its own exit, and a stop reaches the ranks.

The first test's is executed. Those of the others are forked from a server that has loaded PyTorch once for all.
"""

import os
import signal
from pathlib import Path

import pytest

from tests.support.node import Box, ended, log
from tests.support.pair import Pair, forked
from tests.support.wait import until
from torchyard.injob import layout
from torchyard.states import StopReason
from torchyard.wire import Action, AttemptOrder, ResultKind
from worker.attempts.folder import AttemptFolder, order
from worker.monitoring import processes


def assign(box: Box, code: str, ranks: int = 2) -> AttemptFolder:
    """A script under torchrun; it imports no torch, so that only the launcher does."""
    prelude = "import os, signal, sys, time\nrank = int(os.environ['RANK'])\n"
    # Modules beside the script must not shadow what torchrun itself imports.
    files = {"train.py": prelude + code, "types.py": "raise ImportError('shadowed')", "random.py": ""}
    return box.assign(launcher="torchrun", command=["python", "train.py", "--lr", "0.1"], files=files, slots=ranks)


WORDS = "rank, os.environ['WORLD_SIZE'], sys.argv[1:], os.getcwd()"


@pytest.fixture(scope="module")
def executed(pair: Pair) -> AttemptFolder:
    """Ranks that tell what they have been given, and their process ids."""
    code = f"print({WORDS}, flush=True)\nopen('pid', 'a').write(f'{{rank}} {{os.getpid()}},')\n"
    folder = assign(pair.cold, code)
    pair.cold.launcher.start(folder.attempt_id)
    ended(folder, 60)
    return folder


@pytest.fixture(scope="module")
def box(pair: Pair, executed: AttemptFolder) -> Box:
    pair.make(executed)
    return pair.warm


def ready(folder: AttemptFolder, ranks: int = 2) -> None:
    logs = [folder.at(layout.LOGS) / f"rank-{rank}.log" for rank in range(ranks)]
    until(lambda: all("ready" in path.read_text() for path in logs), seconds=60, what="the ranks")


def test_each_rank_has_its_own_log_and_exit(executed: AttemptFolder) -> None:
    folder, result = executed, ended(executed)
    assert (result.kind, result.exit_code, result.failed_rank) == (ResultKind.EXITED, 0, None), log(
        folder, layout.LAUNCHER_LOG
    )
    assert [(each.rank, each.exit_code) for each in result.ranks] == [(0, 0), (1, 0)]
    for rank in range(2):
        assert log(folder, f"rank-{rank}.log") == f"{rank} 2 ['--lr', '0.1'] {folder.at(layout.CODE)}\n"
    own = dict(pair.split() for pair in (folder.at(layout.CODE) / "pid").read_text().split(",") if pair)
    assert {rank: (folder.at(layout.MARKS) / f"pid-{rank}").read_text() for rank in "01"} == own


PARSES = "import argparse, os\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr')\n"
SHOWS = "print(os.environ['RANK'], vars(parser.parse_args()))\n"
DECLARED = {
    "underscore": "parser.add_argument('--local_rank', type=int)\n",
    "dash": "parser.add_argument('--local-rank', type=int)\n",
    "none": "os.environ['LOCAL_RANK']\n",
}


def test_launch_passes_the_option_that_a_script_declares(box: Box) -> None:
    folders = {}
    for name, declares in DECLARED.items():
        command = ["python", "train.py", "--lr", "0.1"]
        files = {"train.py": PARSES + declares + SHOWS}
        folders[name] = box.assign(launcher="launch", command=command, files=files, slots=2)
        box.launcher.start(folders[name].attempt_id)
    for name, folder in folders.items():
        result = ended(folder, 60)
        assert [(each.rank, each.exit_code) for each in result.ranks] == [(0, 0), (1, 0)], log(folder)
        for rank in range(2):
            told = {} if name == "none" else {"local_rank": rank}
            assert log(folder, f"rank-{rank}.log") == f"{rank} { ({'lr': '0.1'} | told) }\n"


FAILS = """
if rank == 0:
    open("zero", "w").close()
    time.sleep(600)
while not os.path.exists("zero"):
    time.sleep(0.02)
print("boom", flush=True)
os._exit(42)
"""


def test_a_rank_that_fails_is_the_failed_one_and_its_own_exit_code_is_kept(box: Box) -> None:
    """`tests/e2e` has one that raises, and one that is killed."""
    folder = assign(box, FAILS)
    box.launcher.start(folder.attempt_id)
    result = ended(folder, 60)
    assert (result.kind, result.exit_code, result.signal, result.failed_rank) == (ResultKind.EXITED, 42, None, 1)
    assert {each.rank: each.signal for each in result.ranks} == {0: signal.SIGTERM, 1: None}
    assert "boom" in log(folder, "rank-1.log")
    assert "boom" not in log(folder, "rank-0.log")
    assert processes.of_attempt(folder.attempt_id) == []


MISSES_THE_OTHER = """
signal.signal(15, signal.SIG_IGN)  # torchrun may be quicker
open(f"own-{rank}", "w").write(str(os.getpid()))
os.rename(f"own-{rank}", f"pid-{rank}")  # whole once it is there
print("ready", os.getppid(), flush=True)
while not os.path.exists("pid-1"):
    time.sleep(0.01)
other = int(open("pid-1").read())
while rank == 1 or os.path.exists(f"/proc/{other}"):
    time.sleep(0.01)
raise ConnectionError("closed by peer")
"""


def test_a_rank_whose_wrapper_is_killed_is_the_failed_one(box: Box) -> None:
    """The other one fails by itself, since it misses its peer, and notes its exit."""
    folder = assign(box, MISSES_THE_OTHER)
    box.launcher.start(folder.attempt_id)
    ready(folder)
    os.kill(int(log(folder, "rank-1.log").split()[1]), signal.SIGKILL)
    result = ended(folder, 60)
    assert "closed by peer" in log(folder, "rank-0.log")
    assert (result.exit_code, result.signal, result.failed_rank) == (None, signal.SIGKILL, 1)
    assert {each.rank: (each.exit_code, each.signal) for each in result.ranks} == {0: (1, None), 1: (None, 9)}
    assert processes.of_attempt(folder.attempt_id) == []


def test_a_stop_goes_to_the_ranks(box: Box) -> None:
    handler = "signal.signal(15, lambda *_: (print('saved', flush=True), sys.exit(0)))\n"
    folder = assign(box, handler + "print('ready', flush=True)\ntime.sleep(600)")
    box.launcher.start(folder.attempt_id)
    ready(folder)
    stop = AttemptOrder(attempt=folder.attempt_id, action=Action.STOP, reason=StopReason.CANCEL)
    order(folder, stop)
    result = ended(folder, 60)
    assert (result.kind, result.stop, result.failed_rank) == (ResultKind.EXITED, StopReason.CANCEL, None)
    assert result.terminated
    assert [(each.rank, each.exit_code) for each in result.ranks] == [(0, 0), (1, 0)]
    assert all("saved" in log(folder, f"rank-{rank}.log") for rank in range(2))
    assert processes.of_attempt(folder.attempt_id) == []


def test_ranks_that_ignore_everything_are_killed(box: Box) -> None:
    folder = assign(box, "signal.signal(15, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(600)")
    box.launcher.start(folder.attempt_id)
    ready(folder)
    order(folder, AttemptOrder(attempt=folder.attempt_id, action=Action.STOP, reason=StopReason.PREEMPT, grace_s=1))
    result = ended(folder, 60)
    assert forked(folder)
    assert (result.kind, result.stop, result.failed_rank) == (ResultKind.KILLED, StopReason.PREEMPT, None)
    assert processes.of_attempt(folder.attempt_id) == []


def test_a_killed_torchrun_takes_its_ranks_along(box: Box) -> None:
    folder = assign(box, "print('ready', flush=True)\ntime.sleep(600)")
    box.launcher.start(folder.attempt_id)
    ready(folder)
    shim = folder.read_shim()
    assert shim is not None
    os.kill(shim.child_pid, signal.SIGKILL)
    result = ended(folder, 60)
    assert (result.kind, result.signal) == (ResultKind.EXITED, signal.SIGKILL)
    assert processes.of_attempt(folder.attempt_id) == []


SCRIPTS = Path(__file__).parents[2] / "e2e" / "scripts"


@pytest.mark.parametrize(
    ("script", "cause"), [("spawn_ddp.py", "own-processes"), ("fixed_port.py", "no-store")], ids=["spawn", "port"]
)
def test_ranks_that_can_never_meet_do_not_wait_for_it(box: Box, script: str, cause: str, port: int) -> None:
    words = ["python", script, "2" if script == "spawn_ddp.py" else str(port)]
    files: dict[str, str | bytes] = {script: (SCRIPTS / script).read_text()}
    folder = box.assign(launcher="torchrun", command=words, files=files, slots=2)
    box.launcher.start(folder.attempt_id)
    result = ended(folder, 150)
    assert (result.kind, result.exit_code, result.fingerprint) == (ResultKind.KILLED, None, cause)
    error = str(result.message)
    assert error.startswith("none of its ranks has met another")
    assert error in log(folder, layout.LAUNCHER_LOG)
    assert processes.of_attempt(folder.attempt_id) == []
