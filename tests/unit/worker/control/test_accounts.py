"""As whom jobs can run here, asked of a directory of users that may hang."""

import threading
from collections.abc import Callable

import pytest

from tests.support.wait import until
from worker.control import accounts
from worker.control.accounts import EVERY_S, UnixAccounts


class Directory:
    def __init__(self) -> None:
        self.users = {"ada"}
        self.asked: list[str] = []
        self.now = 0.0
        self.accounts = UnixAccounts(self.runs_as, lambda look: look(), lambda: self.now)

    def runs_as(self, name: str) -> bool:
        self.asked.append(name)
        return name in self.users


def test_accounts_are_looked_up_when_they_are_new_and_now_and_then() -> None:
    there = Directory()
    assert there.accounts.ask(["ada", "ghost"])
    assert there.accounts.known == {"ada": True, "ghost": False}
    assert not there.accounts.ask(["ghost", "ada"])
    assert there.asked == ["ada", "ghost"]
    there.users.add("ghost")
    there.now = EVERY_S
    assert there.accounts.ask(["ada", "ghost"])
    assert there.accounts.known == {"ada": True, "ghost": True}
    assert there.accounts.ask(["ada"])
    assert not there.accounts.ask(["ada"])


def spawn(look: Callable[[], object]) -> None:
    threading.Thread(target=look, daemon=True).start()


def test_a_directory_that_hangs_holds_up_nobody_and_is_asked_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "PATIENCE_S", 0.01)
    answers, asked = threading.Event(), list[str]()

    def runs_as(name: str) -> bool:
        asked.append(name)
        return answers.wait(30)

    known = UnixAccounts(runs_as, spawn)
    assert not known.ask(["ada"])
    until(lambda: asked, what="the question")
    assert not known.ask(["ada"])
    assert (known.known, asked) == ({}, ["ada"])
    answers.set()
    until(lambda: known.known == {"ada": True}, what="the answer")
