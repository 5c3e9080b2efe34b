"""``yard top`` in a terminal of its own, against a running service."""

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import live, scripted
from tests.support.live import Live
from tests.support.wait import until
from torchyard.api import TokenRequest
from torchyard.cli.top.feed import look
from torchyard.cli.top.snapshot import Selection
from torchyard.client.client import Client
from torchyard.client.log_calls import LOG_END

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
YARD = (sys.executable, "-m", "torchyard.cli.main")


class Terminal:
    """A pseudo-terminal of 80x24 with `yard top` in its foreground."""

    def __init__(self, url: str, token: str) -> None:
        self.ours, self.theirs = pty.openpty()
        self.resize(24, 80)
        self.before = termios.tcgetattr(self.theirs)
        self.seen = b""
        given = {"TORCHYARD_URL": url, "TORCHYARD_TOKEN": token, "TERM": "xterm", "LANG": "C.UTF-8"}
        standard = {"stdin": self.theirs, "stdout": self.theirs, "stderr": self.theirs}
        self.process = subprocess.Popen([*YARD, "top"], env={**os.environ, **given}, start_new_session=True, **standard)

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        self.seen = b""
        os.write(self.ours, keys)

    def shows(self, pattern: str) -> None:
        """Waits until something has been drawn since the last key."""
        until(lambda: self._read() and re.search(pattern.encode(), self.seen), what=f"{pattern} on the screen")

    def _read(self) -> bool:
        while select.select([self.ours], [], [], 0)[0]:
            self.seen += os.read(self.ours, 65536)
        return True

    def left(self) -> int:
        """The exit code; what was changed of the terminal has been restored by then."""
        until(lambda: self._read() and self.process.poll() is not None, what="the end of yard top")
        self._read()
        assert self.seen.rindex(LEAVE) > self.seen.rfind(ENTER)
        assert termios.tcgetattr(self.theirs) == self.before
        assert b"Traceback" not in self.seen
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def open_terminal() -> Iterator[Callable[[str, str], Terminal]]:
    opened: list[Terminal] = []

    def start(url: str, token: str) -> Terminal:
        opened.append(Terminal(url, token))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.fixture
def terminal(open_terminal: Callable[..., Terminal], live_service: Live) -> Callable[[], Terminal]:
    return lambda: open_terminal(live_service.url, live_service.admin_token)


def submit(client: Client, name: str, gpus: int = 1) -> Any:
    return client.submit({"name": name, "command": ["true"], "launcher": "none", "resources": {"gpus": gpus}})


def test_the_box_is_watched_and_the_terminal_is_restored(
    terminal: Callable[[], Terminal], live_service: Live, client: Client
) -> None:
    with scripted.agent(live_service, devices=2) as agent:
        submit(client, "first")
        agent.start().write("hello from the first\n")
        submit(client, "second")
        agent.start().write("hello from the second\n")
        submit(client, "third", gpus=2)
        top = terminal()
        top.shows(r"> \d+ +second(?s:.*)hello from the second")
        assert ENTER in top.seen
        top.press(b"j")
        top.shows(r"> \d+ +first(?s:.*)hello from the first")
        top.press(b"\x1b[B")
        top.shows(r"> \d+ +third(?s:.*)job \d+ third waits")
        top.press(b"\x1b[A\x1bOA")
        top.shows(r"> \d+ +second")
        top.seen = b""
        top.resize(40, 120)
        top.shows(r"> \d+ +second")
        top.press(b"\x1a")  # nobody could wake it here, so that the kernel does not stop it
        top.shows(r"\x1b\[\?1049l(?s:.*)\x1b\[\?1049h(?s:.*)> \d+ +second")
        top.press(b"q")
        assert top.left() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_leave_the_screen_first(terminal: Callable[[], Terminal], number: int, code: int) -> None:
    top = terminal()
    top.shows("q leave")
    top.process.send_signal(number)
    assert top.left() == code


def test_a_service_that_goes_away_is_waited_for_and_a_revoked_token_ends_it(
    open_terminal: Callable[..., Terminal], migrated_file: Path, yard_home: Path, tmp_path: Path, port: int
) -> None:
    database_url = f"sqlite:///{shutil.copy(migrated_file, tmp_path / 'top.db')}"
    with live.process(database_url, yard_home, TORCHYARD_PORT=str(port)) as (_, url):
        admin = (yard_home / "admin.token").read_text().strip()
        with Client(url, admin) as client:
            token = client.create_token(TokenRequest(name="top", scopes=["read"]))
        top = open_terminal(url, token.secret)
        top.shows("0 running, 0 waiting")
        top.seen = b""
    top.shows(r"reconnecting, data from \d\d:\d\d")
    top.seen = b""
    with live.process(database_url, yard_home, TORCHYARD_PORT=str(port)):
        top.shows("0 running, 0 waiting")
        with Client(url, admin) as client:
            client.revoke_token(token.id)
        assert top.left() == 1
        assert b"revoked: ask for a new one" in top.seen[top.seen.rindex(LEAVE) :]


def test_a_pipe_gets_one_picture(live_service: Live, client: Client) -> None:
    with scripted.agent(live_service, devices=2) as agent:
        submit(client, "first")
        agent.start().write("hello from the first\n")
        given = {"TORCHYARD_URL": live_service.url, "TORCHYARD_TOKEN": live_service.admin_token}
        environment = {**os.environ, **given}
        done = subprocess.run([*YARD, "top"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 2 free" in done.stdout
    assert "hello from the first" in done.stdout
    assert "\x1b" not in done.stdout
    assert not re.search(r" $", done.stdout, re.MULTILINE)


def test_a_look_is_five_requests_whatever_is_in_the_log(live_service: Live, client: Client) -> None:
    with scripted.agent(live_service, devices=2) as agent:
        submit(client, "bar")
        agent.start().write("".join(f"{percent}%|#####\r" for percent in range(2**14)))
        sent: list[str] = []
        client.connection._http.event_hooks["request"].append(lambda request: sent.append(request.url.path))
        seen = look(client, Selection())
    assert len(sent) == 5, sent
    assert [each.node for each in seen.idle] == [node.name for node in seen.nodes], "one of two devices is free"
    assert seen.log is not None
    assert seen.log.data.endswith(b"\r16383%|#####\r")
    assert len(seen.log.data) == LOG_END
