"""Sign-in by UNIX account: a token from the service on this machine, which the kernel tells who asks."""

import json
import os
import socket
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from torchyard import exceptions, home
from torchyard.api import Problem

DEFAULT_SOCKET: Final = Path("/run/torchyard/sign-in.sock")
_CREDENTIALS: Final = struct.Struct("3i")
TIMEOUT_S: Final = 30.0
MAX_ANSWER: Final = 65536


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The service, the user and the token that an account has got."""

    url: str
    user: str
    token: str


def socket_path() -> Path:
    """Return the path of the socket: ``TORCHYARD_SIGN_IN_SOCKET``, or where the service of a machine has it."""
    return Path(os.environ.get("TORCHYARD_SIGN_IN_SOCKET") or DEFAULT_SOCKET)


def sign_in(path: Path) -> SignedIn:
    """Return what the service gives this account, and keep it in ``TORCHYARD_HOME`` for later commands.

    RefusedError if the service refuses, NoTokenError where there is none, UnreachableError for one that does not answer
    as it should and for a socket that is not to be trusted.
    """
    answer = _ask(path)
    if "token" not in answer:
        raise exceptions.from_problem(Problem.model_validate(answer))
    found = SignedIn(answer["url"], answer["user"], answer["token"])
    home.write_login(found.url, found.token)
    return found


def _ask(path: Path) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_S)
        try:
            connection.connect(str(path))
        except OSError as error:
            raise exceptions.NoTokenError(
                f"there is no token, and nobody signs in by UNIX account here ({path}: {error.strerror or error}): set "
                "TORCHYARD_URL and TORCHYARD_TOKEN, which an administrator makes with `yard token create`, or start a "
                "stack of your own with `yard up`"
            ) from error
        _check_server(connection, path)
        try:
            with connection.makefile("rb") as reader:
                answer = json.loads(reader.readline(MAX_ANSWER))
        except (OSError, ValueError) as error:
            raise _silent(path) from error
    if not isinstance(answer, dict):
        raise _silent(path)
    return answer


def _silent(path: Path) -> exceptions.UnreachableError:
    return exceptions.UnreachableError(f"the service at {path} does not answer: its log says why, or try again")


def _check_server(connection: socket.socket, path: Path) -> None:
    """Refuse a socket that anybody could have put there: what it answers is believed."""
    folder = path.parent.stat()
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, server, _ = _CREDENTIALS.unpack(raw)
    if folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or server not in {0, os.geteuid(), folder.st_uid}:
        raise exceptions.UnreachableError(
            f"{path}: others may write to its folder, so it may be anybody's: nothing was asked of it"
        )
