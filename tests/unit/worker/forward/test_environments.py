"""What is installed for attempts: read when it is time, told by its hash."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import accounts
from torchyard import wire
from worker.exceptions import RequestRefusedError
from worker.forward.environments import (
    DELAY_S,
    PATIENCE_S,
    EnvironmentForwarder,
    EnvironmentReader,
    JobInterpreter,
    interpreter_of,
)

LAUNCH: dict[str, Any] = {
    "python": "/v/bin/python",
    "argv": ["/v/bin/python", "-u", "x.py"],
    "env": {"HOME": "/home/ada"},
}
LAUNCH |= {"torchrun": False, "uid": None, "gid": None, "groups": None, "node_rank": 0}


class Sink:
    """Knows some hashes."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.told: list[wire.EnvironmentReport] = []
        self.error: Exception | None = None

    def environment(self, attempt: str, told: wire.EnvironmentReport) -> bool:
        assert attempt == "att-1"
        self.told.append(told)
        if self.error is not None:
            raise self.error
        return told.content is None and told.sha256 not in self.known


class World:
    """A forwarder, its clock, and what it does in the background."""

    def __init__(self, python: Path) -> None:
        self.now = 0.0
        self.background: list[Callable[[], None]] = []
        self.sink = Sink()
        self.forwarder = EnvironmentForwarder(
            self.sink,
            "att-1",
            JobInterpreter(path=python),
            EnvironmentReader(),
            spawn=self.background.append,
            now=lambda: self.now,
        )

    def pump(self, seconds: float = 0.0, *, ended: bool = False) -> bool:
        self.now += seconds
        return self.forwarder.pump(ended=ended)

    def read(self) -> None:
        self.background.pop()()


def make(prefix: Path, *names: str) -> Path:
    for name in names:
        (prefix / "lib/python3.11/site-packages" / name).mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text("version = 3.11.9\n")
    return prefix / "bin/python"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(make(tmp_path, "torch-2.13.0.dist-info"))


@pytest.mark.parametrize(
    ("change", "path", "home"),
    [
        ({}, "/v/bin/python", "/home/ada"),
        ({"env": {"HOME": "/home/ada", "PYTHONNOUSERSITE": "1"}}, "/v/bin/python", None),
        ({"argv": ["/other/bin/python3.12", "x.py"]}, "/other/bin/python3.12", "/home/ada"),
        ({"argv": ["/usr/bin/make"]}, "/v/bin/python", "/home/ada"),
        ({"argv": ["python", "x.py"]}, "/v/bin/python", "/home/ada"),
        ({"argv": ["/w/bin/py", "elastic.py"], "torchrun": True}, "/w/bin/py", "/home/ada"),
    ],
)
def test_the_interpreter_is_the_one_that_runs_the_job(change: dict[str, Any], path: str, home: str | None) -> None:
    found = interpreter_of(LAUNCH | change)
    assert found == JobInterpreter(path=Path(path), home=Path(home) if home else None)


def test_other_nodes_and_launches_of_an_older_worker_tell_nothing() -> None:
    assert interpreter_of(LAUNCH | {"node_rank": 1}) is None
    assert interpreter_of({}) is None


def test_it_is_read_after_the_start_and_told_with_what_the_service_lacks(world: World) -> None:
    assert not world.pump()
    assert not world.pump(DELAY_S - 0.1)
    assert world.background == []
    world.pump(0.2)
    assert world.sink.told == []
    world.read()
    for _ in range(2):
        assert not world.pump()
    first, second = world.sink.told
    assert first.content is None
    assert second.content is not None
    assert first.sha256 == second.sha256 == hashlib.sha256(second.content.encode()).hexdigest()
    assert wire.Environment.model_validate_json(second.content).packages == {"torch": "2.13.0"}


def test_what_the_service_knows_is_told_by_its_hash_alone(world: World, tmp_path: Path) -> None:
    content = EnvironmentReader().read(JobInterpreter(path=tmp_path / "bin/python")).model_dump_json()
    world.sink.known.add(hashlib.sha256(content.encode()).hexdigest())
    world.pump()
    world.pump(DELAY_S)
    world.read()
    world.pump()
    assert [told.content for told in world.sink.told] == [None]


def test_a_job_that_ends_soon_waits_for_it_and_one_that_was_never_seen_has_none(world: World) -> None:
    world.pump()
    assert world.pump(0.1, ended=True)
    world.read()
    assert not world.pump(ended=True)
    assert len(world.sink.told) == 2
    other = World(Path("/none/bin/python"))
    assert not other.pump(ended=True)
    assert other.background == []


def test_a_folder_that_does_not_answer_keeps_no_attempt(world: World) -> None:
    world.pump()
    assert world.pump(ended=True)
    assert not world.pump(PATIENCE_S + 1, ended=True)
    assert world.sink.told == []


def test_a_refusal_is_the_end_of_it(world: World) -> None:
    world.sink.error = RequestRefusedError(422, {}, "POST /environment")
    world.pump()
    world.pump(ended=True)
    world.read()
    assert not world.pump(ended=True)
    assert not world.pump(ended=True)
    assert len(world.sink.told) == 1


def test_it_is_read_again_once_the_folders_have_changed(tmp_path: Path) -> None:
    asked = JobInterpreter(path=make(tmp_path, "torch-2.13.0.dist-info"))
    reader = EnvironmentReader()
    first = reader.read(asked)
    assert reader.read(asked) is first
    make_later = tmp_path / "lib/python3.11/site-packages"
    (make_later / "numpy-2.1.dist-info").mkdir()
    os.utime(make_later, ns=(1, 1))
    assert reader.read(asked).packages == {"numpy": "2.1", "torch": "2.13.0"}


@accounts.needs_root
def test_another_account_reads_for_itself(open_tmp: Path) -> None:
    """What root may read and the job's account may not stays unread."""
    python = make(open_tmp, "torch-2.13.0.dist-info")
    with accounts.account() as ada:
        asked = JobInterpreter(path=python, uid=ada.pw_uid, gid=ada.pw_gid)
        assert EnvironmentReader().read(asked).packages == {"torch": "2.13.0"}
        site = open_tmp / "lib/python3.11/site-packages"
        site.chmod(0o700)
        closed = EnvironmentReader().read(asked)
    assert closed.packages == {}
    assert closed.error == f"{site} cannot be read: Permission denied"
