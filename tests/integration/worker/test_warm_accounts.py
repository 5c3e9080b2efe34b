"""Jobs of other accounts than the worker's are forked from a server of their own account."""

import json
import os
import pwd
import signal
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import accounts, cpusets
from tests.support.node import Box, ended, log
from tests.support.processes import MARK
from tests.support.wait import until
from torchyard.injob import layout
from torchyard.wire import Result, ResultKind
from worker.attempts.folder import AttemptFolder
from worker.attempts.starts import StartReader
from worker.launching import warm
from worker.launching.inherited import inherited
from worker.launching.shims import ShimServer
from worker.launching.warm import ForkServers, ServerKey, key_of
from worker.limits.hierarchies import Controller, Hierarchies, usable
from worker.limits.node import NodeLimits
from worker.monitoring import processes, stacks
from worker.shim import table

pytestmark = [
    accounts.needs_root,
    pytest.mark.skipif(Controller.PIDS not in usable(), reason="needs cgroups that it may make"),
]


class Team:
    """A root worker whose jobs run as an account, once with fork servers and once without."""

    def __init__(self, root: Path, python: Path, who: pwd.struct_passwd, hierarchies: Hierarchies) -> None:
        self.who, self.python = who, python
        self.limits = NodeLimits(hierarchies=hierarchies, home_id=os.urandom(16).hex())
        self.servers = ForkServers(log=root / "forkserver.log", limits=self.limits)
        self.shims = ShimServer(log=root / "shims.log", environment=inherited(dict(os.environ), [MARK]))
        given: dict[str, Any] = {"python": python, "limits": self.limits, "shims": self.shims}
        self.cold = Box(root, **given)
        self.warm = Box(root, fork_servers=self.servers, **given)

    def close(self) -> None:
        self.servers.close()
        self.shims.close()
        self.limits.sweep(lambda _: False)

    def given(self, program: str, spec: dict[str, Any]) -> dict[str, Any]:
        alone = {"launcher": "python", "command": ["python", "train.py"], "unix_user": self.who.pw_name}
        return {"files": {"train.py": textwrap.dedent(program)}, **alone, **spec}

    def key(self, like: AttemptFolder) -> ServerKey:
        key = key_of(like.read_launch() or {})
        assert key is not None
        return key

    def make(self, like: AttemptFolder) -> ServerKey:
        key = self.key(like)
        if not self.servers.has(key):
            assert self.servers.make(key), self.servers._unfit
        return key

    def run(self, program: str, **spec: Any) -> tuple[tuple[AttemptFolder, Result], ...]:
        """A job in both ways, and that the second was forked."""
        given = self.given(program, spec)
        cold, first = self.cold.run(**given)
        self.make(cold)
        warm, second = self.warm.run(**given)
        assert forked(warm), log(warm, layout.LAUNCHER_LOG)
        assert not forked(cold)
        return (cold, first), (warm, second)

    def start(self, program: str, **spec: Any) -> AttemptFolder:
        """A job that is forked and has written its file `ready`."""
        given = self.given(program, spec)
        folder = self.warm.assign(**given)
        self.warm.launcher.start(folder.attempt_id)
        if not forked(folder):  # no other test has made its server
            self.make(folder)
            end(folder)
            folder = self.warm.assign(**given)
            self.warm.launcher.start(folder.attempt_id)
        assert forked(folder), log(folder, layout.LAUNCHER_LOG)
        until(lambda: list(folder.at(layout.CODE).glob("ready*")), seconds=60, what="the job")
        return folder


@pytest.fixture(scope="module")
def team(patience: None, shared_open_tmp: Path) -> Iterator[Team]:
    python = accounts.python(shared_open_tmp)
    # The job that is forked gets the core that the executed one had, whatever other workers run meanwhile.
    with accounts.account() as who, cpusets.apart(usable()) as hierarchies:
        made = Team(shared_open_tmp / "yard", python, who, hierarchies)
        yield made
        made.close()


def forked(folder: AttemptFolder) -> bool:
    shim = folder.read_shim()
    return shim is not None and shim.forked


def end(folder: AttemptFolder) -> Result:
    shim = folder.read_shim()
    assert shim is not None
    if not folder.has_result():
        os.kill(shim.child_pid, signal.SIGKILL)
    return ended(folder)


def told(folder: AttemptFolder, name: str = "rank-0.log") -> str:
    return log(folder, name).replace(folder.attempt_id, "att")


def outcome(result: Result) -> dict[str, object]:
    ranks = [(each.rank, each.exit_code, each.signal) for each in result.ranks]
    names = {"kind", "exit_code", "signal", "failed_rank", "message", "stop"}
    return {"ranks": ranks, **result.model_dump(include=names)}


SELF = """
    import os, resource, signal, sys
    print(os.getresuid(), os.getresgid(), sorted(os.getgroups()), os.umask(0), os.getcwd()[-9:], sys.argv)
    print([resource.getrlimit(each) for each in range(16)], os.nice(0), os.sched_getaffinity(0))
    print(open('/proc/self/cgroup').read(), open('/proc/self/oom_score_adj').read())
    lines = open('/proc/self/status').read().splitlines()
    print([line for line in lines if line.startswith(('Cap', 'NoNewPrivs', 'Seccomp', 'Uid', 'Gid', 'Groups'))])
    print([(each.name, str(signal.getsignal(each))) for each in signal.Signals if signal.getsignal(each)])
    print(os.getsid(0) == os.getpid(), len(os.listdir('/proc/self/fd')), sys.stdin.read(), os.stat(0).st_rdev)
    print([os.readlink(f'/proc/self/ns/{each}') for each in sorted(os.listdir('/proc/self/ns'))])
    print({name: value for name, value in os.environ.items() if name != 'TMPDIR'})
    print(os.stat(os.environ['TMPDIR']).st_uid, open('/proc/self/loginuid').read())
    import ctypes
    print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
    open('made', 'w').close()
    print(oct(os.stat('made').st_mode), os.stat('made').st_uid)
"""


def test_it_is_what_an_executed_one_is(team: Team) -> None:
    resources = {"gpus": 0, "cpus": 1, "memory": "4GiB"}
    (cold, first), (warm, second) = team.run(SELF, resources=resources)
    assert told(warm).splitlines() == told(cold).splitlines()
    assert str(team.who.pw_uid) in told(warm)
    assert warm.attempt_id in log(warm)  # by its cgroup
    assert outcome(second) == outcome(first)
    start = StartReader(warm, owner=team.who.pw_uid).read()
    assert start is not None
    assert (start.warm, start.cold_reason) == (True, None)


ENDS = {
    "exit": "import sys; print('x', end=''); sys.exit(7)",
    "exception": "raise ValueError('bad')",
    "signal": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "leftovers": """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
        os.wait()
        """,
    "executed": "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\nprint(torch.get_num_threads())\n",
}


@pytest.mark.parametrize("how", ENDS)
def test_it_ends_like_an_executed_one(team: Team, how: str) -> None:
    (cold, first), (warm, second) = team.run(ENDS[how])
    assert told(warm) == told(cold)
    assert outcome(second) == outcome(first)
    assert not processes.of_attempt(warm.attempt_id)


RANKS = """
    import os, time
    from torch.distributed.elastic.multiprocessing.errors import record
    import torch
    import torch.distributed as dist
    @record
    def main():
        dist.init_process_group('gloo')
        total = torch.tensor([dist.get_rank() + 1.0])
        dist.all_reduce(total)
        print(total, os.getuid(), os.environ['LOCAL_RANK'], flush=True)
        if dist.get_rank() == 0:
            os.mkdir('told')
        if dist.get_rank() == 1:
            while not os.path.exists('told'):
                time.sleep(0.02)
            raise RuntimeError('of rank 1')
        time.sleep(600)
    main()
"""


def test_ranks_and_the_agent_are_forked_and_tell_errors_by_torchruns_file(team: Team) -> None:
    spec: dict[str, Any] = {"launcher": "torchrun", "slots": 2, "resources": {"gpus": 2}}
    (cold, first), (warm, second) = team.run(RANKS, **spec)
    assert (first.failed_rank, first.exit_code) == (1, 1)
    assert outcome(second) == outcome(first)
    for folder in (cold, warm):
        assert "RuntimeError: of rank 1" in log(folder, layout.LAUNCHER_LOG)
        assert log(folder).startswith(f"tensor([3.]) {team.who.pw_uid} 0")
    assert told(warm, "rank-1.log") == told(cold, "rank-1.log")


WAITS = "import os, time\nopen(f\"ready-{os.environ.get('RANK', 0)}\", 'w').close()\ntime.sleep(600)\n"


def test_its_processes_are_found_and_end_with_their_shim(team: Team) -> None:
    folder = team.start(WAITS, launcher="torchrun", slots=2, resources={"gpus": 2})
    until(lambda: len(list(folder.at(layout.CODE).glob("ready-*"))) == 2, seconds=60, what="the ranks")
    shim = folder.read_shim()
    assert shim is not None
    below = shim.below(table.everyone())
    assert len(below) == 5  # agent, two wrappers, two ranks
    assert {each.pid for each in processes.of_attempt(folder.attempt_id)} == {
        shim.reaper_pid,
        *(each.pid for each in below),
    }
    assert [(each.rank, each.main) for each in stacks.targets(folder)] == [(0, True), (1, True)]
    os.kill(shim.pid, signal.SIGKILL)
    until(lambda: not folder.locked(), what="the end of the shim")
    until(lambda: table.find(shim.reaper_pid) is None, what="the end of the reaper")
    assert team.warm.launcher.finalize_lost(folder.attempt_id)
    assert not processes.of_attempt(folder.attempt_id)


@pytest.mark.parametrize("launcher", ["python", "torchrun"])
def test_a_cancelled_job_ends_wholly(team: Team, launcher: str) -> None:
    spec: dict[str, Any] = (
        {"launcher": launcher, "slots": 1, "resources": {"gpus": 1}} if launcher == "torchrun" else {}
    )
    program = "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\n" + WAITS
    folder = team.start(program, **spec)
    stop(folder, grace_s=60.0)
    result = ended(folder)
    assert (result.stop, [each.signal for each in result.ranks]) == ("cancel", [signal.SIGTERM])
    assert not processes.of_attempt(folder.attempt_id)


def test_a_job_outlives_its_server_and_its_end_is_known(team: Team) -> None:
    program = WAITS.replace(
        "time.sleep(600)", "\nwhile not os.path.exists('go'): time.sleep(0.02)\nraise SystemExit(4)"
    )
    folder = team.start(program)
    team.servers.end()
    (folder.at(layout.CODE) / "go").touch()
    assert ended(folder).exit_code == 4


def test_a_job_ends_with_its_reaper(team: Team) -> None:
    folder = team.start("import subprocess\nsubprocess.Popen(['sleep', '600'])\n" + WAITS)
    shim = folder.read_shim()
    assert shim is not None
    os.kill(shim.reaper_pid, signal.SIGKILL)
    result = ended(folder)
    assert (result.exit_code, result.signal) == (None, signal.SIGKILL)
    assert not processes.of_attempt(folder.attempt_id)


def test_a_secret_is_the_jobs_and_no_servers(team: Team) -> None:
    team.warm.control.values = {"API_KEY": "k-0123456789"}
    program = "import os\nprint(os.environ['API_KEY'])\n" + WAITS
    folder = team.start(program, secrets=["API_KEY"])
    assert log(folder) == "k-0123456789\n"
    shim, server = folder.read_shim(), team.servers._servers[team.key(folder)]
    assert shim is not None
    for pid in (server.process.pid, shim.reaper_pid, shim.child_pid):
        for name in ("environ", "cmdline"):
            assert b"k-0123456789" not in Path("/proc", str(pid), name).read_bytes()
    assert b"k-0123456789" not in memory(server.process.pid)
    end(folder)


def memory(pid: int) -> bytes:
    """What a process has written to its memory."""
    found = b""
    with Path("/proc", str(pid), "mem").open("rb", buffering=0) as content:
        for line in Path("/proc", str(pid), "maps").read_text().splitlines():
            if "[heap]" in line or "[stack]" in line:
                start, stop = (int(each, 16) for each in line.split()[0].split("-"))
                content.seek(start)
                found += content.read(stop - start)
    return found


def test_a_server_serves_one_account(team: Team) -> None:
    folder, _ = team.cold.run(**team.given("", {}))
    key = team.make(folder)
    with accounts.account() as other:
        second, result = team.warm.run(**team.given("import os; print(os.getuid())", {"unix_user": other.pw_name}))
        assert (result.exit_code, log(second), forked(second)) == (0, f"{other.pw_uid}\n", False)
    assert team.key(second) != key
    # Neither does it where nothing but the account differs.
    assert team.key(second).account != key.account
    assert not team.servers.has(replace(key, account=team.key(second).account))
    start = StartReader(second, owner=other.pw_uid).read()
    assert start is not None
    assert start.cold_reason == warm.NOT_YET.message


def test_a_server_has_its_account_and_no_more(team: Team) -> None:
    folder, _ = team.cold.run(**team.given("", {}))
    server = team.servers._servers[team.make(folder)]
    status = Path("/proc", str(server.process.pid), "status").read_text()
    who = team.who.pw_uid
    assert f"Uid:\t{who}\t{who}\t{who}\t{who}\n" in status
    assert "CapEff:\t0000000000000000" in status
    assert {f"/proc/{server.process.pid}/fd/{number}" for number in range(3)} <= {
        str(each)
        for each in Path("/proc", str(server.process.pid), "fd").iterdir()
        if each.readlink() == Path("/dev/null")
    }
    assert server.process.pid in {int(pid) for group in server.limits["groups"] for pid in procs(group)}


def test_what_jobs_have_imported_is_loaded_by_their_accounts_server_alone(team: Team) -> None:
    folder, _ = team.cold.run(**team.given("import torch\n", {"env": {"LEARNS": "1"}}))
    record, key = folder.read_launch() or {}, team.key(folder)
    mark = folder.at(layout.MARKS) / layout.imported_mark(0)
    assert mark.stat().st_uid == team.who.pw_uid
    mark.write_text("os; evil\n../evil\nnowhere_at_all\n" + "own " * 9 + "\nunfinished")
    team.servers.learn(record, folder, os.getuid())  # whose file it is not
    assert team.servers.learnt.wanted(key.digest) == []
    team.servers.learn(record, folder, team.who.pw_uid)
    assert team.servers.learnt.wanted(key.digest) == ["nowhere_at_all"]
    assert team.servers.make(key), team.servers._unfit
    assert team.servers.learnt.struck(key.digest) == {"nowhere_at_all": "it is not installed"}
    assert team.servers.learnt.wanted(replace(key, account=None).digest) == []


def procs(group: str) -> list[str]:
    return Path(group, "cgroup.procs").read_text().split()


#: An environment whose reapers are another program: with a process of somebody else's in its words.
HOSTILE = """
import json, os, socket, sys, time
if sys.argv[0].endswith('forkserver/__main__.py'):
    import socket
    requests = socket.socket(fileno=int(sys.argv[2]))
    while requests.recv(1) != b"\\n": pass
    requests.sendall(json.dumps({"folders": ["/"], "files": [], "stamps": []}).encode() + b"\\n")
    foreign, how = open(os.environ['FOREIGN']).read().split()
    while True:
        message, ends, _, _ = socket.recv_fds(requests, 8192, 4)
        if not message: break
        shim = socket.socket(fileno=ends[0])
        child = os.fork() if how == 'early' else 0
        if how == 'early' and child == 0:
            time.sleep(600)
        shim.send(b'r')
        words = shim.recv(512)
        if how == 'nonce':
            words = b'0' * 16
        shim.send(words)
        if how == 'names':
            socket.recv_fds(shim, 512, 3)
            shim.send(json.dumps({"pid": int(foreign)}).encode())
        if how == 'early':
            socket.recv_fds(shim, 512, 3)
            shim.send(json.dumps({"pid": child}).encode())
        if how == 'mute':
            received = socket.recv_fds(shim, 512, 3)[1]
            child = os.fork()
            if child == 0:
                time.sleep(600)
            shim.send(json.dumps({"pid": child}).encode())
            shim.recv(1)
            os.kill(child, 9)
            os.waitpid(child, 0)
            for each in received:
                os.close(each)
            for status in (0x7f, -1, 2**70, "0", None):
                shim.send(json.dumps({"pid": child, "status": status}).encode())
            shim.send(json.dumps({"pid": int(foreign), "status": 0}).encode())
        if how == 'numbers':
            socket.recv_fds(shim, 512, 3)
            shim.send(b'[' * 400)
        time.sleep(600)
"""


@pytest.fixture
def victim() -> Iterator[int]:
    """A process of somebody else's, which nothing has happened to in the end."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    folder = Path("/proc", str(pid))
    before = {name: (folder / name).read_text() for name in ("cgroup", "oom_score_adj")}
    try:
        yield pid
        assert {name: (folder / name).read_text() for name in before} == before
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def hostile(team: Team, folder: Path, victim: int, how: str) -> dict[str, Any]:
    """A job in an environment whose server is another program, which has been started."""
    (folder / "sitecustomize.py").write_text(HOSTILE)
    (folder / "foreign").write_text(f"{victim} {how}")
    given = team.given("print('ran')", {"env": {"PYTHONPATH": str(folder), "FOREIGN": str(folder / "foreign")}})
    first, _ = team.cold.run(**given)
    team.make(first)
    return given


@pytest.mark.parametrize("how", ["nonce", "names", "numbers", "early"])
def test_a_hostile_server_harms_no_process_that_it_names(team: Team, open_tmp: Path, victim: int, how: str) -> None:
    """Nor does a process count that it has forked where the job does not belong."""
    second, result = team.warm.run(**hostile(team, open_tmp, victim, how))
    assert (result.exit_code, log(second), forked(second)) == (0, "ran\n", False)
    assert "the fork server of its account is not used" in log(second, layout.LAUNCHER_LOG)
    start = StartReader(second, owner=team.who.pw_uid).read()
    assert start is not None
    assert start.cold_reason == warm.REFUSED.message


def test_a_reaper_that_does_not_tell_harms_its_own_job_alone(team: Team, open_tmp: Path, victim: int) -> None:
    folder = team.warm.assign(**hostile(team, open_tmp, victim, "mute"))
    team.warm.launcher.start(folder.attempt_id)
    shim = folder.read_shim()
    assert shim is not None
    assert shim.forked
    until(lambda: table.find(shim.child_pid) is None, what="the end of the program")
    stop(folder, grace_s=0.2)
    result = ended(folder)
    assert (result.kind, result.stop, result.signal) == (ResultKind.KILLED, "cancel", signal.SIGKILL)
    reaper = table.find(shim.reaper_pid)
    assert reaper is None or reaper.dead  # its server need not wait for it


def stop(folder: AttemptFolder, grace_s: float) -> None:
    command = {"action": "stop", "reason": "cancel", "grace_s": grace_s}
    folder.at(layout.COMMAND).write_text(json.dumps(command))


def test_too_much_memory_ends_it_and_is_told(team: Team) -> None:
    program = "held = bytearray(700 << 20)\nimport time\ntime.sleep(600)\n"
    (_, first), (_, second) = team.run(program, resources={"gpus": 0, "memory": "300MiB"})
    assert (first.fingerprint, second.fingerprint) == ("memory-limit", "memory-limit")
    assert outcome(second) == outcome(first)


def test_what_the_jobs_environment_tells_the_loader_is_not_told_as_root(team: Team, open_tmp: Path) -> None:
    """By LD_PRELOAD it could name any library; by these two the loader writes files as whoever it loads for."""
    os.chown(open_tmp, team.who.pw_uid, -1)
    given = team.given("", {"env": {"LD_DEBUG": "statistics", "LD_DEBUG_OUTPUT": str(open_tmp / "loader")}})
    folder, _ = team.cold.run(**given)
    team.make(folder)
    written = {each.name: each.stat().st_uid for each in open_tmp.glob("loader.*")}
    server = team.servers._servers[team.key(folder)]
    assert written[f"loader.{server.process.pid}"] == team.who.pw_uid
    assert set(written.values()) == {team.who.pw_uid}
