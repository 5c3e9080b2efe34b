"""A job's user who moves files about while root prepares, keeps or removes them gets nothing that is not theirs."""

import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support import accounts
from tests.support.node import PYTHON, Box
from torchyard.injob import layout
from worker.launching import prepare
from worker.launching.identity import identity

pytestmark = accounts.needs_root

USER = pwd.getpwnam("nobody").pw_uid
#: Files of the job, and as many of the same names that are root's.
NAMES = [f"file-{number}" for number in range(2000)]
BECOME = """
import os, sys
uid, parent, victim = int(sys.argv[1]), *sys.argv[2:]
os.setgroups([]); os.setgid(uid); os.setuid(uid)
print("ready", flush=True)
"""
#: Waits until the first file is the user's, and puts a link in the place of its folder.
SWAP_WHAT_IS_GIVEN = """
while True:
    try:
        os.chdir(parent)
        first = os.path.join("data", os.listdir("data")[0])
        while os.stat(first).st_uid != uid:
            pass
        os.rename("data", "away")
        os.symlink(victim, "data")
        break
    except OSError:
        pass
"""
#: Keeps a folder from being empty, and puts a link in the place of what root makes in there.
SWAP_WHAT_IS_MADE = """
number = 0
while True:
    try:
        os.chdir(parent)
        number += 1
        os.close(os.open(f"full-{number}", os.O_CREAT))
        if os.lstat("code").st_uid == 0:
            os.rename("code", f"away-{number}")
            os.symlink(victim, "code")
    except OSError:
        pass
"""


@pytest.fixture
def box(open_tmp: Path) -> Box:
    return Box(open_tmp)


@pytest.fixture
def victim(open_tmp: Path) -> Path:
    """A folder of root's that everybody may look into."""
    made = open_tmp / "victim"
    made.mkdir()
    for name in NAMES:
        (made / name).write_text("root's")
    return made


def stolen(victim: Path) -> list[str]:
    """What is not as root has left it."""
    changed = [path.name for path in victim.iterdir() if path.stat().st_uid != 0 or path.read_text() != "root's"]
    return sorted({*changed, *({path.name for path in victim.iterdir()} ^ set(NAMES))})


@contextmanager
def attack(how: str, parent: Path, victim: Path) -> Iterator[None]:
    """A process of another account that has its way with a folder whenever the kernel allows it."""
    command = [PYTHON, "-I", "-S", "-c", BECOME + how, str(USER), str(parent), str(victim)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


def test_files_that_root_hands_over_are_the_jobs_alone(box: Box, victim: Path) -> None:
    who = identity("ada", "nobody", one_trust_domain=False)
    for _ in range(5):
        folder = box.assign(unix_user="nobody", files={}, command=["true"])
        launch = box.control.launch(folder.attempt_id)
        assert launch is not None
        folder.create()
        code = prepare.lay_out(folder, launch, box.control.fetch_blob)
        folder.make_temporary()
        code.joinpath("data").mkdir()
        for name in NAMES:
            code.joinpath("data", name).touch()
        with attack(SWAP_WHAT_IS_GIVEN, code, victim):
            prepare.hand_over(folder, launch, who)
            prepare.let_in(folder, who)
        assert stolen(victim) == []
        assert folder.at(layout.CODE).lstat().st_uid == USER
        folder.remove()


def test_what_an_earlier_try_has_handed_over_is_not_written_into(box: Box, victim: Path) -> None:
    """A worker that was killed after it had handed the folders over prepares the attempt anew."""
    files: dict[str, str | bytes] = dict.fromkeys(NAMES, "the job's")
    folder = box.assign(unix_user="nobody", files=files, command=["true"])
    folder.at(layout.CODE).mkdir(parents=True)
    for path in (folder.at(layout.JOB), folder.at(layout.CODE)):
        os.chown(path, USER, -1)
    with attack(SWAP_WHAT_IS_MADE, folder.at(layout.JOB), victim):
        for _ in range(50):
            with suppress(OSError):
                box.launcher.start(folder.attempt_id)
            if folder.started():
                break
        assert folder.started()
    assert stolen(victim) == []
