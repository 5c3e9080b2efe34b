"""Shims that are forked from a process which has their modules loaded: no interpreter is started for each."""

import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from worker import shim
from worker.shim.server import GO, READY

logger = logging.getLogger(__name__)

SERVER: Final = Path(shim.__file__).parent / "server.py"
#: Seconds that a server may take to answer.
ANSWER_S: Final = 5.0


@dataclass(kw_only=True)
class _ShimServer:
    process: subprocess.Popen[bytes]
    requests: socket.socket

    def end(self) -> None:
        """Let it end; what it has forked goes on."""
        self.requests.close()
        self.process.kill()
        self.process.wait()


@dataclass(kw_only=True)
class ShimServer:
    """The server of one worker, made when the first shim is wanted. Every method may be called from any thread."""

    log: Path
    """File of what it says."""
    environment: Mapping[str, str]
    """That of the shims."""
    python: Path = Path(sys.executable)
    _server: _ShimServer | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _sending: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _closed: bool = field(default=False, repr=False)

    def prepare(self) -> None:
        """Make the server before the first shim is wanted."""
        try:
            with self._lock:
                self._living()
        except OSError as error:
            logger.warning("shims have no server yet: %s", error)

    def launch(
        self,
        launch: Path,
        log: int,
        held: Sequence[int],
        told: bytes | None = None,
        reaper: socket.socket | None = None,
    ) -> bool:
        """Fork the shim of an attempt, with its log and the descriptors that it holds; return when the job has begun.

        It reads from its input what it is told, and has the job forked by a reaper if there is one
        (`worker.shim.reaper_child`). False, and nothing has been done, when no server answers.
        """
        try:
            with self._lock:
                server = self._living()
                if server is None:
                    return False
            begun = request(server.requests, launch, log, held, told, lock=self._sending, reaper=reaper)
        except OSError as error:
            logger.warning("no shim is forked from the server: %s", error)
            begun = False
        if not begun:
            self._retire()
        return begun

    def _living(self) -> _ShimServer | None:
        if self._server is not None and self._server.process.poll() is not None:
            self._server.end()
            self._server = None
        if self._server is None and not self._closed:
            self._server = self._started()
        return self._server

    def _started(self) -> _ShimServer:
        ours, theirs = socket.socketpair()
        with theirs, self.log.open("ab") as log:
            process = subprocess.Popen(
                [str(self.python), "-I", "-S", str(SERVER), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=dict(self.environment),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        return _ShimServer(process=process, requests=ours)

    def _retire(self) -> None:
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.end()

    def close(self) -> None:
        """End the server, for good; shims go on."""
        self._closed = True
        self._retire()


def request(
    requests: socket.socket,
    launch: Path,
    log: int,
    held: Sequence[int],
    told: bytes | None,
    *,
    lock: threading.Lock,
    answer_s: float | None = None,
    reaper: socket.socket | None = None,
) -> bool:
    """Ask the server at the other end for a shim (`worker.shim.server`), and return when its job has begun.

    False, or an OSError, when it does not answer: until the child is let go it does nothing, and it leaves when the
    other end is closed, so an attempt never gets two shims.
    """
    answer, theirs = socket.socketpair()
    given, words = _input(told)
    asked = json.dumps({"launch": str(launch), "by_reaper": reaper is not None}).encode()
    held = [*held, *([] if reaper is None else [reaper.fileno()])]
    with answer, words:
        with theirs, os.fdopen(given, "rb"), lock:
            socket.send_fds(requests, [asked], [theirs.fileno(), given, log, *held])
        answer.settimeout(ANSWER_S if answer_s is None else answer_s)
        if answer.recv(1) != READY:
            return False
        answer.settimeout(None)
        answer.sendall(GO)
        with suppress(BrokenPipeError):  # then the shim is dead, and the attempt lost
            words.write(told or b"")
            words.close()
        answer.recv(1)
        return True


def _input(told: bytes | None) -> tuple[int, IO[bytes]]:
    """Make what a shim reads: a pipe and the end by which it is told something, or nothing at all."""
    if told is None:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), Path(os.devnull).open("wb")
    given, ours = os.pipe()
    return given, os.fdopen(ours, "wb")
