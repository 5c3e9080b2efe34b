"""A part of an attempt on several nodes starts when all are prepared: once, whatever is killed on the way."""

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.node import Box, ended, lines, log
from tests.support.wait import until
from torchyard.injob import layout
from torchyard.states import StopReason
from torchyard.wire import Action, AttemptOrder, Phase, ResultKind
from worker.attempts.folder import AttemptFolder, order
from worker.launching import record
from worker.monitoring import inventory

TELL = "echo $RANK $LOCAL_RANK $WORLD_SIZE $NODE_RANK $MASTER_ADDR $MASTER_PORT $GLOO_SOCKET_IFNAME"


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def second_of_two(box: Box, command: str, **changes: Any) -> AttemptFolder:
    resources = {"gpus": 0, "nodes": 2, **changes.pop("resources", {})}
    return box.assign(command=["sh", "-c", command], resources=resources, node_rank=1, **changes)


@contextmanager
def starting(box: Box, folder: AttemptFolder) -> Iterator[threading.Thread]:
    """A launcher that waits for the word."""
    thread = threading.Thread(target=box.launcher.start, args=[folder.attempt_id])
    thread.start()
    yield thread
    thread.join(60)
    assert not thread.is_alive()


def test_it_waits_for_the_word_and_is_told_who_it_is(box: Box) -> None:
    folder = second_of_two(box, TELL)
    with starting(box, folder):
        told = box.control.told(folder.attempt_id)
        with socket.socket() as rival, pytest.raises(OSError, match="in use"):
            rival.bind(("", told.port))
        (status,) = inventory.scan(box.attempts)
        assert (status.phase, folder.started()) == (Phase.PREPARING, False)
        go = box.control.say_go(folder.attempt_id)
    result = ended(folder)
    assert (result.exit_code, [one.rank for one in result.ranks]) == (0, [1])
    assert log(folder, "rank-1.log") == f"1 0 2 1 127.0.0.1 {go.port} lo\n"
    assert sorted(path.name for path in folder.at(layout.LOGS).iterdir()) == ["launcher.log", "rank-1.log"]


@pytest.mark.parametrize("where", ["claim", "prepared", "go"])
def test_a_starter_killed_before_started_is_no_loss(box: Box, tmp_path: Path, where: str) -> None:
    folder = second_of_two(box, f"echo run >> {tmp_path}/runs")
    if where == "go":
        (box.control.root / "go" / f"{folder.attempt_id}.json").write_text(
            '{"go": true, "address": "127.0.0.1", "port": 20001}'
        )
    words = [sys.executable, "-m", "tests.support.starter", str(tmp_path), folder.attempt_id, where]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert not box.launcher.finalize_lost(folder.attempt_id)
    with starting(box, folder):
        box.control.say_go(folder.attempt_id)
    assert ended(folder).exit_code == 0
    assert lines(tmp_path / "runs") == ["run"]


def test_a_void_leaves_nothing(box: Box) -> None:
    folder = second_of_two(box, "true")
    with starting(box, folder):
        box.control.told(folder.attempt_id)
        (box.control.root / "launches" / folder.attempt_id).unlink()
    assert not folder.path.exists()


def test_an_order_to_end_reaches_a_part_that_waits(box: Box) -> None:
    folder = second_of_two(box, "true")
    with starting(box, folder):
        box.control.told(folder.attempt_id)
        order(folder, AttemptOrder(attempt=folder.attempt_id, action=Action.KILL))
    result = ended(folder)
    assert (result.kind, result.started_us) == (ResultKind.KILLED, None)


def test_an_interface_that_the_node_lacks_is_told(box: Box) -> None:
    folder = second_of_two(box, "true", resources={"network_interface": "ib7"})
    box.launcher.start(folder.attempt_id)
    result = ended(folder)
    assert result.kind is ResultKind.UNUSABLE
    assert "resources.network_interface" in str(result.message)


def test_a_stop_waits_a_while_for_the_first_poll(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranks of the first node may have polled already; here they are a moment later."""
    monkeypatch.setattr(record, "PATIENCE_S", 60.0)
    slow = "trap 'echo terminated; exit 3' TERM; touch $0; while [ ! -e $1 ]; do sleep 0.05; done; echo polled"
    folder = box.assign(
        command=["sh", "-c", slow, str(tmp_path / "up"), str(tmp_path / "seen")],
        resources={"gpus": 0, "nodes": 2},
        node_rank=1,
    )
    with starting(box, folder):
        box.control.say_go(folder.attempt_id)
    until((tmp_path / "up").exists)
    order(folder, AttemptOrder(attempt=folder.attempt_id, action=Action.STOP, reason=StopReason.CANCEL, grace_s=600))
    until(lambda: folder.at(layout.CONTROL).exists())
    (folder.at(layout.MARKS) / layout.polled_mark(1)).touch()
    (tmp_path / "seen").touch()
    result = ended(folder)
    assert (log(folder, "rank-1.log"), result.exit_code, result.terminated) == ("polled\n", 0, False)
