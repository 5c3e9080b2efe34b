import os
import pwd
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import accounts
from torchyard.injob import layout
from worker.attempts import removal
from worker.attempts.folder import AttemptFolder

NOBODY = pwd.getpwnam("nobody").pw_uid
#: Folders in folders, more than functions may call each other.
DEEP = sys.getrecursionlimit() + 100


def nest(top: Path) -> None:
    """A folder in a folder, and so on, with a file in each."""
    at = os.open(top, os.O_RDONLY)
    for _ in range(DEEP):
        os.close(os.open("file", os.O_CREAT, dir_fd=at))
        os.mkdir("a", dir_fd=at)
        inner = os.open("a", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)


@contextmanager
def open_files(count: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_any_depth_is_removed_with_few_open_files(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    nest(folder)
    with open_files(len(list(Path("/proc/self/fd").iterdir())) + 20):
        removal.remove(folder)
    assert list(tmp_path.iterdir()) == []


def test_an_attempt_goes_however_deep_its_job_has_nested_folders(tmp_path: Path) -> None:
    attempt = AttemptFolder(tmp_path / "attempts", "att-1")
    attempt.create()
    attempt.make_temporary()
    attempt.at(layout.OUTPUT).mkdir(parents=True)
    temporary = attempt.temporary
    for folder in (temporary, attempt.at(layout.OUTPUT)):
        nest(folder)
    attempt.remove()
    assert list(attempt.attempts.iterdir()) == []
    assert not temporary.exists()


def test_nothing_behind_a_link_goes(tmp_path: Path) -> None:
    other, folder = tmp_path / "other", tmp_path / "folder"
    other.mkdir()
    (other / "file").touch()
    (folder / "inner").mkdir(parents=True)
    for name in ("link", "inner/link"):
        (folder / name).symlink_to(other)
    removal.remove(folder)
    (tmp_path / "link").symlink_to(other)
    removal.remove(tmp_path / "link")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "other"]
    assert (other / "file").exists()


def test_a_pipe_in_a_folders_place_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer would never come; a job's user can swap it for a folder at any moment."""
    os.mkfifo(tmp_path / "pipe")
    with opened(tmp_path) as at:
        assert not removal.remove_at(at, "pipe")
        assert removal.remove_at(at, "none")
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    unlink = os.unlink

    def swap(name: str, *, dir_fd: int) -> None:
        try:
            unlink(name, dir_fd=dir_fd)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=dir_fd)
            os.mkfifo(name, dir_fd=dir_fd)
            raise

    monkeypatch.setattr(os, "unlink", swap)
    removal.remove(folder)
    assert not folder.exists()


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    at = os.open(folder, os.O_RDONLY)
    try:
        yield at
    finally:
        os.close(at)


@accounts.needs_root
def test_a_stranger_sees_nothing_of_what_was_kept_from_them(open_tmp: Path) -> None:
    """What lies in a private folder is moved up into one that everybody may look into."""
    folder = open_tmp / "folder"
    (folder / "private" / "shared" / "more").mkdir(parents=True)
    (folder / "private").chmod(0o700)
    seen = subprocess.run(["ls", folder], user="nobody", check=False, capture_output=True)
    assert seen.stdout == b"private\n"
    rename = os.rename

    def looked_at(*args: Any, **where: int) -> None:
        rename(*args, **where)
        seen = subprocess.run(["ls", folder], user="nobody", check=False, capture_output=True)
        assert b"Permission denied" in seen.stderr

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "rename", looked_at)
        removal.remove(folder)
    assert not folder.exists()


@accounts.needs_root
@pytest.mark.parametrize("mode", [0o555, 0o000])
def test_folders_that_their_owner_has_closed_go_too(open_tmp: Path, mode: int) -> None:
    """A worker without root is the owner; root would not ask."""
    folder = open_tmp / "folder"
    (folder / "inner" / "more").mkdir(parents=True)
    (folder / "inner" / "more" / "file").touch()
    for path in (open_tmp, folder, folder / "inner", folder / "inner" / "more"):
        os.chown(path, NOBODY, -1)
        path.chmod(0o700 if path == open_tmp else mode)
    os.seteuid(NOBODY)
    try:
        removal.remove(folder)
    finally:
        os.seteuid(0)
    assert not folder.exists()


@accounts.needs_root
def test_a_folder_that_is_emptied_cannot_be_filled_again_by_its_owner(open_tmp: Path) -> None:
    folder = open_tmp / "folder"
    (folder / "inner" / "more").mkdir(parents=True)
    for path in (folder, folder / "inner", folder / "inner" / "more"):
        os.chown(path, NOBODY, -1)
    listed, refused = os.listdir, list[int]()

    def filled(at: int) -> list[str]:
        names = listed(at)
        os.seteuid(NOBODY)
        try:
            os.mkdir("again", dir_fd=at)
        except PermissionError:
            refused.append(at)
        finally:
            os.seteuid(0)
        return names

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "listdir", filled)
        removal.remove(folder)
    assert len(refused) == 2, "'more' was empty"
    assert not folder.exists()
