"""Sign-in by UNIX account: real accounts at the real socket of a service, with the command that they type."""

import json
import os
import pwd
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from service.api import sign_in_socket
from service.db import engine
from service.identity import unix_sign_in
from tests.support import accounts
from tests.support.live import Live
from tests.support.problems import kind
from torchyard import exceptions, home
from torchyard.api import PREFIX
from torchyard.cli import main
from torchyard.client import unix_sign_in as client_sign_in

#: What asks without anything of ours, as an account that may not enter the folders of the test's own interpreter.
ASK = """
import socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    sys.stdout.write(connection.makefile().read())
"""


@dataclass
class Desk:
    live: Live
    socket: Path

    def users(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in self.live.client.get(f"{PREFIX}/users").json()}

    def add(self, name: str, **fields: Any) -> None:
        answer = self.live.client.post(f"{PREFIX}/users", json={"name": name, **fields})
        assert answer.status_code == 201, answer.text

    def ask(self, account: pwd.struct_passwd) -> dict[str, Any]:
        """What the account is answered."""
        words = ["/usr/bin/python3", "-c", ASK, str(self.socket)]
        done = subprocess.run(
            words, user=account.pw_uid, group=account.pw_gid, extra_groups=[], cwd="/", capture_output=True, check=True
        )
        return dict(json.loads(done.stdout))

    def who(self, answer: dict[str, Any]) -> dict[str, Any]:
        assert answer["url"] == self.live.url
        with self.live.as_token(answer["token"]) as client:
            return dict(client.get(f"{PREFIX}/settings").json())


@contextmanager
def public_folder() -> Iterator[Path]:
    """A folder that everybody passes, as /run is, which pytest's are not."""
    done = subprocess.run(["mktemp", "-d", "/var/tmp/ty-XXXXXXXX"], check=True, capture_output=True, text=True)
    folder = Path(done.stdout.strip())
    subprocess.run(["chmod", "0755", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["rm", "-r", folder], check=True)


@pytest.fixture
def desk(serve: Callable[..., Any]) -> Iterator[Callable[..., Desk]]:
    """``desk(unix_sign_in="create")`` runs a service with a socket."""
    with ExitStack() as stack:

        def open_desk(**settings: Any) -> Desk:
            path = stack.enter_context(public_folder()) / "torchyard" / "sign-in.sock"
            live = stack.enter_context(serve(sign_in_socket=path, **settings))
            stack.enter_context(sign_in_socket.serving(live.app, live.url))
            return Desk(live, path)

        yield open_desk


@pytest.fixture
def ada() -> Iterator[pwd.struct_passwd]:
    with accounts.account() as found:
        yield found


@pytest.fixture
def eve() -> Iterator[pwd.struct_passwd]:
    with accounts.account() as found:
        yield found


@accounts.needs_root
def test_an_account_signs_in_as_its_user_alone(
    desk: Callable[..., Desk], ada: pwd.struct_passwd, eve: pwd.struct_passwd
) -> None:
    here = desk()
    assert stat.S_IMODE(here.socket.stat().st_mode) == 0o666
    assert stat.S_IMODE(here.socket.parent.stat().st_mode) == 0o755
    refused = here.ask(ada)
    assert refused["status"] == 403
    assert f"yard users add {ada.pw_name} --unix-user {ada.pw_name}" in refused["detail"]
    here.add("ada", unix_user=ada.pw_name)
    here.add(eve.pw_name, admin=True)  # of the account's name, with no account of its own
    settings = here.who(here.ask(ada))
    assert (settings["user"]["name"], settings["scopes"]) == ("ada", ["read", "submit"])
    settings = here.who(here.ask(eve))
    assert (settings["user"]["name"], settings["scopes"]) == (eve.pw_name, ["read", "submit"]), "administers nothing"
    told = here.live.client.get(f"{PREFIX}/audit", params={"action": "session"}).json()["items"]
    assert [(each["user"], each["address"], each["result"]) for each in told] == [
        (eve.pw_name, f"uid {eve.pw_uid}", "done"),
        ("ada", f"uid {ada.pw_uid}", "done"),
        ("(unknown)", f"uid {ada.pw_uid}", "refused"),
    ]


@accounts.needs_root
def test_a_fault_of_ours_is_told_and_the_next_account_is_answered(
    desk: Callable[..., Desk], ada: pwd.struct_passwd, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = desk(unix_sign_in="create")
    monkeypatch.setattr(unix_sign_in, "sign_in", lambda *_: 1 / 0)
    assert here.ask(ada)["status"] == 500
    monkeypatch.undo()
    with here.live.context.db.write(), monkeypatch.context() as hasty:  # keeps all other writers out of a file
        hasty.setattr(engine, "WAIT_S", 0.05)
        busy = here.ask(ada)
    assert busy.get("status") == (503 if here.live.context.db.is_sqlite else None)
    assert here.who(here.ask(ada))["user"]["role"] == "member"


@accounts.needs_root
def test_new_users_are_made_where_the_administrator_says_so(desk: Callable[..., Desk], ada: pwd.struct_passwd) -> None:
    here = desk(unix_sign_in="create")
    assert here.who(here.ask(ada))["user"]["role"] == "member"
    assert here.users()[ada.pw_name]["unix_user"] == ada.pw_name
    here.live.client.delete(f"{PREFIX}/users/{ada.pw_name}")
    assert "deactivated" in here.ask(ada)["detail"], "and not made anew"
    assert here.ask(pwd.getpwnam("nobody"))["status"] == 403
    assert here.ask(pwd.getpwnam("daemon"))["status"] == 403
    assert {"nobody", "daemon"}.isdisjoint(here.users())


@accounts.needs_root
def test_root_and_administrators_are_named_in_the_settings(
    desk: Callable[..., Desk], ada: pwd.struct_passwd, eve: pwd.struct_passwd
) -> None:
    root = pwd.getpwuid(0)
    assert "TORCHYARD_UNIX_ADMINISTRATORS" in desk(unix_sign_in="create").ask(root)["detail"]
    here = desk(unix_administrators=("root", ada.pw_name, eve.pw_name))
    assert here.who(here.ask(root))["scopes"] == ["admin", "read", "submit"]
    here.add("ada", unix_user=ada.pw_name, admin=True)
    here.add("eve", unix_user=eve.pw_name)
    assert "admin" in here.who(here.ask(ada))["scopes"]
    assert "admin" not in here.who(here.ask(eve))["scopes"], "the setting makes nobody an administrator"


@accounts.needs_root
def test_who_stands_for_nobody_or_for_several_is_told(desk: Callable[..., Desk], ada: pwd.struct_passwd) -> None:
    here = desk()
    here.add(ada.pw_name, unix_user="another")
    assert "has another UNIX account, another" in here.ask(ada)["detail"]
    here.add("one", unix_user=ada.pw_name)
    assert here.who(here.ask(ada))["user"]["name"] == "one"
    here.add("two", unix_user=ada.pw_name)
    assert "one, two share the UNIX account" in here.ask(ada)["detail"]
    for name in ("one", "two"):
        here.live.client.patch(f"{PREFIX}/users/{name}", json={"unix_user": None})
    here.live.client.patch(f"{PREFIX}/users/{ada.pw_name}", json={"unix_user": None, "role": "viewer"})
    assert here.who(here.ask(ada))["scopes"] == ["read"]


@accounts.needs_root
def test_sign_ins_are_limited_and_old_tokens_end(
    desk: Callable[..., Desk], ada: pwd.struct_passwd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unix_sign_in, "MAX_TOKENS", 2)
    here = desk()
    here.add("ada", unix_user=ada.pw_name)
    answers = [here.ask(ada) for _ in range(12)]
    assert [each.get("status") for each in answers] == [None] * 10 + [429] * 2
    with here.live.as_token(answers[7]["token"]) as old, here.live.as_token(answers[8]["token"]) as new:
        assert kind(old.get(f"{PREFIX}/jobs")) == (401, "unauthorized")
        assert new.get(f"{PREFIX}/jobs").status_code == 200


def test_who_asks_and_goes_holds_up_nobody(desk: Callable[..., Desk]) -> None:
    here = desk(unix_administrators=(pwd.getpwuid(os.geteuid()).pw_name,))
    with ExitStack() as stack:
        for _ in range(5):
            silent = stack.enter_context(socket.socket(socket.AF_UNIX))
            silent.connect(str(here.socket))
        found = client_sign_in.sign_in(here.socket)
        assert found.url == here.live.url


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["yard", *words])
    with pytest.raises(SystemExit) as ended:
        main.run()
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out, shown.err


def test_yard_login_needs_no_token(
    desk: Callable[..., Desk],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    here = desk(unix_administrators=(me,))
    monkeypatch.setenv("TORCHYARD_HOME", str(tmp_path / "hers"))
    assert run(monkeypatch, capsys, "ls")[0] == 1
    monkeypatch.setenv("TORCHYARD_SIGN_IN_SOCKET", str(tmp_path / "none.sock"))
    code, _, told = run(monkeypatch, capsys, "login")
    assert (code, "nobody signs in by UNIX account here" in told) == (1, True)
    monkeypatch.setenv("TORCHYARD_SIGN_IN_SOCKET", str(here.socket))
    code, link, told = run(monkeypatch, capsys, "login")
    assert (code, told) == (0, f"signed in at {here.live.url} as {me}\n")
    assert link.startswith(f"{here.live.url}/#login=")
    assert stat.S_IMODE(home.login_file().stat().st_mode) == 0o600
    assert run(monkeypatch, capsys, "ls")[0] == 0
    code, again, told = run(monkeypatch, capsys, "login")
    assert (code, told) == (0, "")
    assert again != link
    assert run(monkeypatch, capsys, "dashboard", "--json")[0] == 0
    # The token goes to no other service.
    monkeypatch.setenv("TORCHYARD_URL", "http://127.0.0.1:9")
    assert "There is no token" in run(monkeypatch, capsys, "ls")[2]


def test_a_socket_that_anybody_may_replace_is_not_asked(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        with pytest.raises(exceptions.UnreachableError, match="others may write"):
            client_sign_in.sign_in(tmp_path / "s")


def test_the_socket_of_a_service_that_was_killed_is_replaced_and_no_other_file(
    serve: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with serve(sign_in_socket=path) as live:
        with sign_in_socket.serving(live.app, live.url):
            assert path.exists()
            with sign_in_socket.serving(live.app, live.url):  # a second one goes on without
                assert "another service answers" in caplog.text
        assert not path.exists()
        path.write_text("precious")
        with sign_in_socket.serving(live.app, live.url):
            assert path.read_text() == "precious"
            assert "is no socket" in caplog.text
        path.unlink()
        live.context.settings.unix_sign_in = "off"
        with sign_in_socket.serving(live.app, live.url):
            assert not path.exists()
