"""Local socket at which an account of this machine gets a token: the kernel tells who connects."""

import json
import logging
import pwd
import socket
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError

from service.api import problems
from service.context import Context
from service.db.engine import DATABASE_ERRORS
from service.errors import ProblemError, of_database
from service.identity import audit, refusals, unix_sign_in
from service.identity.audit import AuditedRequest
from service.identity.callers import Tokens
from service.identity.refusals import Refusal, Refusals
from service.identity.sign_in_limits import SignInLimits
from service.identity.unix_sign_in import SignInRule, UnixAccount
from torchyard import problems as kinds

logger = logging.getLogger(__name__)

#: ``struct ucred``: pid, uid, gid.
_CREDENTIALS: Final = struct.Struct("3i")
#: Seconds that a client may take to read its answer, which fits into the socket's buffer.
SEND_S: Final = 1.0
BACKLOG: Final = 128


@dataclass(frozen=True, kw_only=True)
class SignInHandler:
    """Handler that answers sign-ins, one at a time, so that no account holds up the service."""

    context: Context
    tokens: Tokens
    refused: Refusals
    url: str
    limits: SignInLimits = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", SignInLimits(self.context.monotonic))

    def answer(self, uid: int) -> dict[str, Any]:
        """Return the address of the service with a token for the account's user, or the problem."""
        request = AuditedRequest(f"uid {uid}", lambda: "session.open")
        try:
            with audit.auditing(request):
                made = self._sign_in(uid)
        except ProblemError as error:
            self._record(error, uid)
            return problems.body(error)
        except SQLAlchemyError as error:
            logger.exception("a sign-in by UNIX account failed")
            return problems.body(of_database(error))
        except Exception:
            logger.exception("a sign-in by UNIX account failed")
            return problems.body(problems.internal())
        return {"url": self.url, "user": made.user, "token": made.secret}

    def _sign_in(self, uid: int) -> Any:
        self.limits.begin(f"uid {uid}")  # and never taken off: each costs a token, whether it is asked for or wasted
        settings = self.context.settings
        rule = SignInRule(mode=settings.unix_sign_in, administrators=settings.unix_administrators)
        made = unix_sign_in.sign_in(self.context.db, rule, _account(uid), self.context.now_us())
        self.tokens.forget()  # older ones may have ended
        return made

    def _record(self, error: ProblemError, uid: int) -> None:
        refusal = Refusal("", f"uid {uid}", "session.open", "", kinds.KINDS[error.kind].status)
        with suppress(*DATABASE_ERRORS):
            refusals.store(self.context.db, self.refused.note(refusal), self.context.now_us())


def _account(uid: int) -> UnixAccount:
    try:
        return UnixAccount(uid, pwd.getpwuid(uid).pw_name)
    except KeyError:
        raise ProblemError("forbidden", f"The number {uid} has no UNIX account on this machine.") from None


class SignInSocket:
    """The socket that the settings name, answered by a thread while they let accounts sign in.

    One that cannot be made is told in the log: everybody with a token goes on without it.
    """

    def __init__(self, handler: SignInHandler) -> None:
        self._handler = handler
        self._listening: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def follow_settings(self) -> str | None:
        """Open or close the socket as the settings have it now; return why it cannot be opened."""
        settings = self._handler.context.settings
        if settings.sign_in_socket is None or settings.unix_sign_in == "off":
            self.close()
            return None
        if self._listening is not None:
            return None
        try:
            self._open(settings.sign_in_socket)
        except OSError as error:
            problem = f"nobody signs in by UNIX account: {error}"
            logger.error(problem)
            return problem
        return None

    def _open(self, path: Path) -> None:
        self._listening = listening = _listen(path)
        self._thread = threading.Thread(target=_serve, args=(listening, self._handler), name="sign-in-socket")
        self._thread.start()

    def close(self) -> None:
        """Close the socket, if it is open."""
        if self._listening is None or self._thread is None:
            return
        path = Path(self._listening.getsockname())
        self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()
        self._listening.close()
        path.unlink(missing_ok=True)
        self._listening = self._thread = None


@contextmanager
def serving(app: FastAPI, url: str) -> Iterator[None]:
    """Answer sign-ins at the socket that the settings name, where they name one; a reload opens and closes it."""
    handler = SignInHandler(context=app.state.context, tokens=app.state.tokens, refused=app.state.refusals, url=url)
    served = SignInSocket(handler)
    app.state.sign_in_socket = served
    served.follow_settings()
    try:
        yield
    finally:
        app.state.sign_in_socket = None
        served.close()


def _listen(path: Path) -> socket.socket:
    if not path.parent.exists():
        path.parent.mkdir(parents=True)
        path.parent.chmod(0o755)  # whatever the umask
    _remove_stale(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(path))
        path.chmod(0o666)
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def _remove_stale(path: Path) -> None:
    """Remove the socket of a service that has ended; OSError if one answers, or if it is something else."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(f"{path} is no socket: remove it, or set TORCHYARD_SIGN_IN_SOCKET to another path")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
                return
        raise FileExistsError(f"another service answers at {path}: set TORCHYARD_SIGN_IN_SOCKET to another path")


def _serve(listening: socket.socket, handler: SignInHandler) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection, suppress(OSError):
            connection.settimeout(SEND_S)
            connection.sendall(json.dumps(handler.answer(peer_uid(connection))).encode() + b"\n")


def peer_uid(connection: socket.socket) -> int:
    """Return the account at the other end of a local connection, by the kernel's word."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    return int(uid)
