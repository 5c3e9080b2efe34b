"""``yard up`` where something is in its way: one line with the mend, no traceback."""

import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import disks
from torchyard import home
from torchyard.exceptions import StartError
from torchyard.stack import up


def test_what_a_detached_stack_fails_of_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_HOME", str(tmp_path / "home"))
    home.write_address("http://127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(StartError) as caught:
        up.detach(up.StackOptions(port=taken.getsockname()[1]))
    assert home.read_address() is not None, "the service that runs here is still found"
    assert str(caught.value).startswith("127.0.0.1:")
    assert "choose another with --port" in str(caught.value)
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_a_home_that_cannot_be_used_is_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "logs").write_text("in the way")
    monkeypatch.setenv("TORCHYARD_HOME", str(tmp_path / "home"))
    command = [sys.executable, "-m", "torchyard.cli.main", "up", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("yard: the stack cannot go on: [Errno 17] File exists")
    assert len(done.stderr.splitlines()) == 1


def test_a_full_disk_is_named_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with disks.small(tmp_path / "home", 1) as folder:
        monkeypatch.setenv("TORCHYARD_HOME", str(folder))
        disks.fill(folder / "full")
        command = [sys.executable, "-m", "torchyard.cli.main", "up", "--port", "0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == f"yard: the stack cannot go on: [Errno 28] No space left on device ({folder})\n"
