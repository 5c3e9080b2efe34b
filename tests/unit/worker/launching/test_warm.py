import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torchyard.injob import layout
from worker import shim
from worker.attempts.folder import AttemptFolder
from worker.forkserver import title
from worker.launching import warm
from worker.launching.learnt import ImportReport
from worker.launching.warm import ForkServers, JobAccount, ServerKey, key_of, never_warm

ELASTIC = str(Path(shim.__file__).parent / "elastic.py")
PYTHON = "/env/bin/python"
AGENT = [PYTHON, ELASTIC, "--nproc-per-node=2", "--no-python", "/w/python", "rank.py", "logs", "--"]


def launch(
    argv: list[str], *, torchrun: bool = True, uid: int | None = None, warm_start: bool = True, **env: str
) -> dict[str, Any]:
    return {"argv": argv, "torchrun": torchrun, "uid": uid, "warm_start": warm_start, "env": env, **ACCOUNT}


#: What is told of an account and a node.
ACCOUNT = {"gid": 1000, "groups": [1000, 27], "isolated": False, "limits": {"groups": ["/cg/x"]}}


def test_attempts_of_one_environment_share_a_server() -> None:
    first = key_of(launch([*AGENT, PYTHON, "-u", "a.py"], HF_HOME="/hf", TMPDIR="/1", TORCHYARD_ATTEMPT_ID="att-1"))
    second = key_of(launch([*AGENT, PYTHON, "-u", "b.py"], HF_HOME="/hf", TMPDIR="/2", CUDA_VISIBLE_DEVICES="3"))
    alone = key_of(launch([PYTHON, "-u", "-m", "c"], torchrun=False, HF_HOME="/hf"))
    assert first == second == alone == ServerKey(interpreter=PYTHON, options=("-u",), environment=(("HF_HOME", "/hf"),))


@pytest.mark.parametrize(
    "other",
    [
        launch([*AGENT, PYTHON, "-u", "a.py"], HF_HOME="/other"),
        launch([*AGENT, PYTHON, "-u", "-O", "a.py"], HF_HOME="/hf"),
        launch([*AGENT, PYTHON, "-u", "a.py"], HF_HOME="/hf", CUDA_VISIBLE_DEVICES=""),
        launch(["/venv/bin/python", *AGENT[1:], "/venv/bin/python", "-u", "a.py"], HF_HOME="/hf"),
    ],
)
def test_those_of_others_do_not(other: dict[str, Any]) -> None:
    assert key_of(other) not in {None, key_of(launch([*AGENT, PYTHON, "-u", "a.py"], HF_HOME="/hf"))}


@pytest.mark.parametrize(
    "executed",
    [
        launch([*AGENT, PYTHON, "-u", "a.py"], uid=1000) | {"isolated": True},
        launch([*AGENT, PYTHON, "-u", "a.py"], uid=1000) | {"limits": {"groups": []}},
        launch([*AGENT, PYTHON, "-u", "a.py"], warm_start=False),
        launch([*AGENT, "bash", "a.sh"]),
        launch([*AGENT, PYTHON, "-u", "-X", "dev", "a.py"]),
        launch([PYTHON, "-m", "torch.distributed.run", "--nnodes=2", "--", PYTHON, "-u", "a.py"]),
        launch(["python", "a.py"], torchrun=False),
        launch(["/bin/true"], torchrun=False),
    ],
    ids=[
        *("another account's network", "another account without groups", "refuses", "no Python", "other options"),
        *("several nodes", "by name", "no arguments"),
    ],
)
def test_what_no_server_can_stand_for_is_executed(executed: dict[str, Any]) -> None:
    assert key_of(executed) is None


def test_each_account_has_servers_of_its_own_with_all_its_groups() -> None:
    command = [*AGENT, PYTHON, "-u", "a.py"]
    keys = [
        key_of(each)
        for each in (
            launch(command),
            launch(command, uid=1000),
            launch(command, uid=1001),
            launch(command, uid=1000) | {"groups": [1000]},
            launch(command, uid=1000) | {"gid": 1001},
        )
    ]
    assert len(set(keys)) == 5
    assert keys[1] is not None
    assert keys[1].account == JobAccount(uid=1000, gid=1000, groups=(1000, 27))


def test_an_account_is_told_why_its_jobs_are_executed() -> None:
    other = launch([*AGENT, PYTHON, "-u", "a.py"], uid=1000)
    assert "a network of its own" in never_warm(other | {"isolated": True}).message
    assert "without cgroups" in never_warm(other | {"limits": {"groups": []}}).message


def test_processes_are_found_by_what_they_show() -> None:
    assert {layout.ATTEMPT_ID, layout.ATTEMPT_DIR, layout.JOB_ID, "RANK"} <= set(title.SHOWN)


def test_an_interpreter_that_cannot_be_shared_is_left_alone(tmp_path: Path) -> None:
    servers = ForkServers(log=tmp_path / "log", clock=lambda: 0.0)
    key = ServerKey(interpreter="/bin/false", options=(), environment=())
    assert not servers.make(key)
    assert not servers.has(key)
    assert not servers.launch(key, tmp_path / "launch.json", 2, [])


def test_a_server_is_asked_for_once_in_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ServerKey] = []
    monkeypatch.setattr(warm.threading, "Timer", lambda _, make, words: Timer(make, words))
    now = [0.0]
    servers = ForkServers(log=tmp_path / "log", clock=lambda: now[0])
    monkeypatch.setattr(servers, "make", made.append)
    key = ServerKey(interpreter=PYTHON, options=(), environment=())
    for now[0] in (0.0, 1.0, warm.UNFIT_S + 1):
        servers.want(key)
    assert made == [key, key]


def test_what_cannot_be_shared_is_remembered_until_it_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each environment has a key of its own, so jobs that set a variable each would fill the worker's memory."""
    monkeypatch.setattr(warm.threading, "Timer", lambda _, make, words: Timer(make, words))
    now = [0.0]
    servers = ForkServers(log=tmp_path / "log", clock=lambda: now[0])
    for run in range(3):
        now[0] += warm.UNFIT_S + 1
        servers.want(ServerKey(interpreter="/bin/false", options=(), environment=(("RUN", str(run)),)))
    assert [len(each) for each in (servers._wanted, servers._unfit)] == [1, 1]


class Timer:
    """A timer whose time has come."""

    daemon = False

    def __init__(self, make: Any, words: Any) -> None:
        self._make, self._words = make, words

    def start(self) -> None:
        self._make(*self._words)


def test_none_is_made_after_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = ServerKey(interpreter="/usr/bin/python3", options=(), environment=())
    servers, ended = ForkServers(log=tmp_path / "log"), []

    class Made:
        def end(self) -> None:
            ended.append(self)

    def started(_self: ForkServers, _key: ServerKey, _names: list[str]) -> Made:
        servers.close()  # while it is made
        return Made()

    monkeypatch.setattr(ForkServers, "_started", started)
    assert not servers.make(key)
    assert len(ended) == 1
    assert not servers.make(key)
    assert len(ended) == 1


class Loaded:
    """A server that has loaded these modules, and answers."""

    def __init__(self, names: list[str], *, used: float = float("inf"), held: int = 0) -> None:
        self.learnt = frozenset(names)
        self.held = held
        self.lock = threading.Lock()
        self.used = used
        self.process: Any = SimpleNamespace(poll=lambda: None)
        self.ended = False

    def end(self) -> None:
        self.ended = True

    def memory(self) -> int:
        return self.held

    def changed(self) -> bool:
        return False


def test_a_server_that_lacks_what_a_job_has_imported_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm.threading, "Timer", lambda _, make, words: Timer(make, words))
    monkeypatch.setattr(ForkServers, "_started", lambda _self, _key, names: Loaded(names))
    servers = ForkServers(log=tmp_path / "log")
    record = launch([*AGENT, PYTHON, "-u", "a.py"])
    key = key_of(record)
    assert key is not None
    folder = AttemptFolder(tmp_path, "att-1")
    folder.at(layout.MARKS).mkdir(parents=True)
    mark = folder.at(layout.MARKS) / layout.imported_mark(0)
    servers.learn(record, folder, os.getuid())
    assert not servers.has(key)
    assert servers.make(key)
    for names, lacks in ((["tidy"], True), (["tidy"], False), (["tidy", "other"], True), ([], False)):
        before: Any = servers._servers[key]
        mark.write_text("".join(f"{name}\n" for name in names))
        servers.learn(record, folder, os.getuid())
        assert (servers._servers[key] is not before, before.ended) == (lacks, lacks)
    assert servers._servers[key].learnt == {"tidy", "other"}


def test_without_what_was_learnt_a_server_is_made_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(_self: ForkServers, _key: ServerKey, names: list[str]) -> Loaded:
        if names:
            raise ValueError("it ended while it loaded")
        return Loaded(names)

    monkeypatch.setattr(ForkServers, "_started", started)
    servers = ForkServers(log=tmp_path / "log")
    key = ServerKey(interpreter=PYTHON, options=(), environment=())
    servers.learnt.take(key.digest, ImportReport(installed=("tidy",)))
    assert servers.make(key)
    assert servers.learnt.wanted(key.digest) == []
    assert "it ended while it loaded" in servers.learnt.struck(key.digest)["tidy"]


TOLD = {"packages": ["tidy"], "modules": 2, "seconds": 0.5}


@pytest.mark.parametrize(
    ("told", "believed"),
    [
        (TOLD, True),
        (TOLD | {"packages": []}, False),
        (TOLD | {"packages": ["elsewhere"]}, False),
        (TOLD | {"seconds": -1}, False),
        (TOLD | {"modules": "many"}, False),
        (7, False),
        (None, False),
    ],
)
def test_what_a_server_says_that_it_has_loaded_is_checked(told: Any, believed: bool) -> None:
    assert (warm._preloaded(told, ["tidy.later", "other"]) is not None) == believed


def test_a_digest_is_an_environments_own() -> None:
    command = [*AGENT, PYTHON, "-u", "a.py"]
    keys = [key_of(launch(command)), key_of(launch(command, HF_HOME="/secret")), key_of(launch(command, uid=1000))]
    digests = {key.digest for key in keys if key is not None}
    assert len(digests) == 3
    assert not any("secret" in digest for digest in digests)


def test_what_was_struck_off_is_tried_again_when_a_server_of_another_account_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ForkServers, "_started", lambda _self, _key, names: Loaded(names))
    monkeypatch.setattr(ForkServers, "want", lambda *_: None)
    monkeypatch.setattr(Loaded, "fork_reaper", lambda _self: None, raising=False)
    servers = ForkServers(log=tmp_path / "log")
    record = launch([*AGENT, PYTHON, "-u", "a.py"], uid=1000)
    key = key_of(record)
    assert key is not None
    servers.learnt.take(key.digest, ImportReport(installed=("tidy",)))
    servers.learnt.strike(key.digest, {"tidy": "its import fails"})
    assert servers.make(key)
    assert servers.fork_reaper(record) == warm.SILENT
    assert servers.learnt.wanted(key.digest) == ["tidy"]


@pytest.mark.parametrize(
    ("free", "now", "stay"),
    [
        (1.0, 30.0, {"c", "d"}),  # the two that were used least lately go, and what is left is within the budget
        (1.0, 20.0 + warm.IDLE_S, {"d"}),
        (warm.FREE / 2, 30.0, set()),
    ],
    ids=["too much memory", "idle", "memory is short"],
)
def test_servers_end_that_are_idle_or_hold_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, now: float, stay: set[str]
) -> None:
    monkeypatch.setattr(warm, "_memory", lambda name: int(1000 * (free if name == "MemAvailable" else 1)))
    servers = ForkServers(log=tmp_path / "log", clock=lambda: now, budget=70)
    there: Any = {
        ServerKey(interpreter=name, options=(), environment=()): Loaded([], used=used, held=30)
        for name, used in (("d", 30.0), ("b", 10.0), ("a", 0.0), ("c", 15.0))
    }
    servers._servers.update(there)
    servers.trim()
    assert {key.interpreter for key in servers._servers} == stay
    assert {key.interpreter for key, server in there.items() if not server.ended} == stay
