"""Secrets of a job reach its environment, and nothing else: no file, no command line, no other account."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.accounts import account, needs_root
from tests.support.node import Box, ended, log, python
from tests.support.wait import until
from torchyard.injob import layout
from torchyard.wire import ResultKind
from worker.attempts.folder import AttemptFolder
from worker.launching.spawn import SHIM

VALUE = "k-0123456789abcdef-\u00e9\nsecond line"
DIGEST = hashlib.sha256(VALUE.encode()).hexdigest()
PRINTS = python("import hashlib, os; print(hashlib.sha256(os.environb[b'API_KEY']).hexdigest())")


@pytest.fixture
def box(open_tmp: Path) -> Box:
    made = Box(open_tmp)
    made.control.values = {"API_KEY": VALUE}
    return made


def contents(folder: Path) -> Iterator[bytes]:
    for place, _, names in os.walk(folder):
        yield from ((Path(place) / name).read_bytes() for name in names if (Path(place) / name).is_file())


def holders(value: bytes, among: str) -> set[int]:
    """Processes that have the value in a file of theirs below /proc."""
    found = set()
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                if value in (each / among).read_bytes():
                    found.add(int(each.name))
            except OSError:
                continue
    return found


def running(box: Box, **spec: object) -> tuple[AttemptFolder, int]:
    """An attempt whose program sleeps, and the program's process."""
    folder = box.assign(command=["sleep", "60"], secrets=["API_KEY"], **spec)
    box.launcher.start(folder.attempt_id)
    shim = folder.read_shim()
    assert shim is not None
    until(lambda: (Path("/proc") / str(shim.child_pid) / "cmdline").read_bytes().startswith(b"sleep"), what="sleep")
    return folder, shim.child_pid


@pytest.mark.parametrize("launcher", ["none", "torchrun"])
def test_the_program_gets_the_value_and_no_file_does(box: Box, launcher: str) -> None:
    command = PRINTS if launcher == "none" else ["print.py"]
    files = {"print.py": PRINTS[-1]}
    folder, result = box.run(command=command, files=files, launcher=launcher, secrets=["API_KEY"], slots=1)
    assert result.exit_code == 0, log(folder)
    assert log(folder).split() == [DIGEST]
    assert json.loads(folder.at(layout.LAUNCH).read_text())["secrets"] == ["API_KEY"]
    for written in contents(folder.path):
        assert b"0123456789abcdef" not in written


def test_only_the_program_s_process_has_it(box: Box) -> None:
    folder, pid = running(box)
    line = b"API_KEY=" + VALUE.encode()
    assert holders(line, "environ") == {pid}
    assert holders(VALUE.encode(), "cmdline") == set()
    assert (Path("/proc") / str(pid) / "fd" / "0").readlink() == Path("/dev/null")
    os.kill(pid, 9)
    ended(folder)


@needs_root
def test_no_other_account_reads_it_from_the_process(box: Box) -> None:
    with account() as owner, account() as stranger:
        folder, pid = running(box, unix_user=owner.pw_name)
        read = ["cat", f"/proc/{pid}/environ"]
        seen = {
            each.pw_name: subprocess.run(read, user=each.pw_uid, group=each.pw_gid, capture_output=True, check=False)
            for each in (owner, stranger)
        }
        assert VALUE.encode() in seen[owner.pw_name].stdout
        assert seen[stranger.pw_name].stdout == b""
        assert b"Permission denied" in seen[stranger.pw_name].stderr
        os.kill(pid, 9)
        ended(folder)


def test_a_secret_that_is_gone_ends_the_attempt_with_the_reason(box: Box, tmp_path: Path) -> None:
    box.control.values = None
    _, result = box.run(command=["touch", str(tmp_path / "ran")], secrets=["API_KEY"])
    assert result.kind is ResultKind.UNUSABLE
    assert result.message == "there is no secret API_KEY of the job's owner"
    assert not (tmp_path / "ran").exists()


def test_without_secrets_none_are_asked_for(box: Box) -> None:
    box.control.values = None
    folder, result = box.run(command=["sh", "-c", "echo ${API_KEY-absent}; readlink /proc/self/fd/0"])
    assert result.exit_code == 0
    assert log(folder).split() == ["absent", "/dev/null"]


def test_a_job_whose_secrets_arrive_in_part_never_starts(box: Box, tmp_path: Path) -> None:
    """As when the worker is killed while it writes them."""
    folder, result = box.run(command=["sh", "-c", f"echo run >> {tmp_path}/runs"], secrets=["API_KEY"])
    assert result.exit_code == 0
    for name in (layout.SHIM, layout.RESULT):
        folder.at(name).unlink()
    broken = subprocess.run(
        [sys.executable, "-I", "-S", str(SHIM), str(folder.at(layout.LAUNCH))],
        input=b'{"API_KEY": "k-0123',
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert b"0123" not in broken.stderr
    assert not folder.at(layout.SHIM).exists()
    assert (tmp_path / "runs").read_text() == "run\n"
