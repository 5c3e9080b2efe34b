"""Modes alone decide, so the folders are described, not made."""

import os
import stat
from pathlib import Path

import pytest

from torchyard.stack import access

ADA, LAB = 4001, 4002


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int, int]]:
    """Folders by their path: mode, owner, group; nothing else exists."""
    folders = {"/": (0o755, 0, 0), "/srv": (0o755, 0, 0), "/srv/yard": (0o711, 0, 0)}

    def found(path: Path, **_: object) -> os.stat_result:
        try:
            mode, owner, group = folders[str(path)]
        except KeyError:
            raise FileNotFoundError(path) from None
        return os.stat_result((stat.S_IFDIR | mode, 0, 0, 0, owner, group, 0, 0, 0, 0))

    monkeypatch.setattr(Path, "stat", found)
    monkeypatch.setattr(Path, "is_symlink", lambda _: False)
    return folders


YARD = Path("/srv/yard")


def test_folders_that_others_pass_through_are_no_barrier(tree: dict[str, tuple[int, int, int]]) -> None:
    assert tree
    assert access.barrier(YARD / "attempts") is None
    assert access.unsafe(YARD / "attempts") is None
    assert access.attempts_problem(YARD / "attempts") is None


def test_the_first_folder_that_is_closed_is_named_with_its_mode_and_the_mend(
    tree: dict[str, tuple[int, int, int]],
) -> None:
    tree["/srv"] = (0o700, 0, 0)
    tree["/srv/yard"] = (0o700, 0, 0)
    problem = access.attempts_problem(YARD)
    assert problem is not None
    assert "they may not enter /srv (mode 0700, owner 0)" in problem
    assert "`chmod o+x /srv`" in problem


def test_owner_and_group_count_as_for_the_kernel(tree: dict[str, tuple[int, int, int]]) -> None:
    tree["/srv/yard"] = (0o710, 0, LAB)
    assert access.barrier(YARD) == YARD
    assert access.barrier(YARD, ADA, [LAB]) is None
    tree["/srv/yard"] = (0o701, ADA, LAB)
    assert access.barrier(YARD, ADA) is None
    assert access.barrier(YARD, 4003, [LAB]) == YARD  # the group's bits alone count for its members
    tree["/srv/yard"] = (0o011, ADA, LAB)
    assert access.barrier(YARD, ADA, [LAB]) == YARD
    assert access.barrier(YARD, 0) is None


@pytest.mark.parametrize(("mode", "owner"), [(0o775, 0), (0o757, 0), (0o755, ADA)])
def test_a_folder_that_others_can_exchange_is_told(
    tree: dict[str, tuple[int, int, int]], mode: int, owner: int
) -> None:
    tree["/srv"] = (mode, owner, LAB)
    problem = access.attempts_problem(YARD)
    assert problem is not None
    assert "others than root could exchange the attempts below /srv" in problem
    assert f"mode {mode:04o}, owner {owner}" in problem


def test_a_sticky_folder_such_as_tmp_is_safe(tree: dict[str, tuple[int, int, int]]) -> None:
    tree["/srv"] = (0o1777, 0, 0)
    assert access.attempts_problem(YARD) is None


def test_an_interpreter_counts_with_what_it_links_to(open_tmp: Path) -> None:
    (open_tmp / "root").mkdir(mode=0o700)
    (open_tmp / "root" / "python").touch()
    (open_tmp / "venv").mkdir()
    (open_tmp / "venv" / "python").symlink_to("../root/python")
    (open_tmp / "link").symlink_to(open_tmp / "venv")
    assert access.barrier(open_tmp / "venv") is None
    problem = access.interpreter_problem(open_tmp / "link" / "python")
    assert problem is not None
    assert "root (mode 0700" in problem
    assert "/usr/bin/python3 -m venv /opt/torchyard" in problem


@pytest.mark.parametrize(
    ("uid", "trust", "said"),
    [
        (4001, "", "jobs run as uid_4001, so nobody else's are taken; with TORCHYARD_ONE_TRUST_DOMAIN=1 they are"),
        (4001, "1", "everybody who may submit may act as uid_4001, and so administer this stack"),
        (0, "", "your own jobs run as root and may do everything on this machine, until you take another account"),
        (0, "", "those of others as their UNIX accounts, which you create: `useradd ada`"),
        (0, "true", "everybody who may submit may do everything on this machine"),
    ],
)
def test_one_line_says_as_whom_jobs_run(
    monkeypatch: pytest.MonkeyPatch, open_tmp: Path, uid: int, trust: str, said: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(access, "attempts_problem", lambda _: None)
    monkeypatch.setattr(access, "interpreter_problem", lambda: "no interpreter" if uid == 0 else None)
    monkeypatch.setenv("TORCHYARD_ONE_TRUST_DOMAIN", trust)
    first, *others = access.remarks(open_tmp)
    assert said in first
    assert first.startswith("accounts: ")
    assert others == (["no interpreter"] if uid == 0 else [])


@pytest.mark.parametrize(("value", "accepted"), [("", True), ("1", True), ("0", False), ("No", False)])
def test_root_may_refuse_to_run_jobs_as_root(monkeypatch: pytest.MonkeyPatch, value: str, accepted: bool) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("TORCHYARD_ONE_TRUST_DOMAIN", raising=False)
    monkeypatch.setenv(access.ROOT_JOBS, value)
    assert access.root_jobs() is accepted
    assert ("no jobs run as root" in access.accounts_words()) is not accepted
