import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import accounts
from torchyard.exceptions import AlreadyRunningError, StartError
from torchyard.stack import instance

#: Takes the lock, gives it on to a child as `yard up` does, and dies.
HOLDER = """
import subprocess, sys
from pathlib import Path
from torchyard.stack.instance import Instance
lock = Instance(Path(sys.argv[1]))
lock.acquire()
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
left = subprocess.Popen(["sleep", "600"], pass_fds=[lock.descriptor], **quiet)
print(left.pid, flush=True)
"""


def test_a_second_stack_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    first, second = instance.Instance(tmp_path), instance.Instance(tmp_path)
    first.acquire()
    first.announce("http://127.0.0.1:1")
    with pytest.raises(AlreadyRunningError, match=rf"process {os.getpid()}, http://127\.0\.0\.1:1.*yard down"):
        second.acquire()
    assert instance.running(tmp_path) == instance.Owner(
        pid=os.getpid(), started=instance._start_ticks(os.getpid()), url="http://127.0.0.1:1"
    )
    assert not instance.is_free(tmp_path)
    first.release()
    assert instance.is_free(tmp_path)
    assert instance.running(tmp_path) is None, "its process may live on for a moment"
    second.acquire()
    second.release()


@accounts.needs_root
def test_root_keeps_off_the_home_of_another_account(tmp_path: Path) -> None:
    os.chown(tmp_path, 54321, -1)
    with pytest.raises(StartError, match=r"belongs to #54321, .*`sudo -u #54321 env TORCHYARD_HOME=/.*`systemctl`"):
        instance.Instance(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_a_killed_stack_are_waited_for(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", HOLDER, str(tmp_path)], capture_output=True, text=True, check=True)
    assert instance.running(tmp_path) is None
    assert not instance.is_free(tmp_path)
    lock = instance.Instance(tmp_path)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(lock.acquire)
        os.kill(int(done.stdout), signal.SIGKILL)
        waiting.result(timeout=30)
    lock.release()


def test_whoever_reads_while_an_owner_is_written_sees_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock, seen = tmp_path / "stack.lock", instance.Instance(tmp_path), []
    lock.acquire()
    lock.announce("http://127.0.0.1:12345")

    def write(*given: Any) -> int:
        seen.append(instance.read(path))
        written = os.pwrite(*given)
        seen.append(instance.read(path))
        return written

    monkeypatch.setattr(instance, "os", SimpleNamespace(**{**vars(os), "pwrite": write}))
    lock.announce("")
    assert [each and each.url for each in seen] == ["http://127.0.0.1:12345", ""]
    lock.release()


def test_a_strange_lock_file_is_no_owner(tmp_path: Path) -> None:
    (tmp_path / "stack.lock").write_text("{}")
    assert instance.running(tmp_path) is None
    (tmp_path / "stack.lock").write_text('{"pid": 1, "started": -5, "url": ""}')
    assert instance.running(tmp_path) is None
    assert instance.is_free(tmp_path)
