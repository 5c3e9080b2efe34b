"""Middleware: checks of Host, Origin and size before any route, and the headers of every response."""

import socket
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.auth import current
from service.api.problems import response
from service.errors import ProblemError, of_database
from service.settings import ServiceSettings
from torchyard.api import PREFIX
from torchyard.ids import now_us
from torchyard.quantities import format_size
from torchyard.translatable import TranslatableText

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: Manifests and batches of the agents are larger than what people write; blobs are streamed and have no limit here.
MAX_BATCH = 32 * 2**20
#: The only change that strangers may ask for, and the bytes that it needs at most.
SIGN_IN = "/api/v1/session"
MAX_SIGN_IN = 4096
#: A refused body up to this size is read to its end, so that a client that sends before it listens gets the answer.
MAX_DRAINED = 64 * 2**20

#: Key of the scope: when the request was received, in microseconds.
RECEIVED = "torchyard.received_us"

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
}

#: Public links: their addresses stay with whoever was given one, what they show is kept by no cache.
LINKED = ("/shared/", f"{PREFIX}/shared/")
LINKED_HEADERS = SECURITY_HEADERS | {
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
    "Cache-Control": "private, no-store",
}


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


#: As the server wants them, made once: every answer has them.
_RAW_HEADERS, _RAW_LINKED_HEADERS = _raw(SECURITY_HEADERS), _raw(LINKED_HEADERS)


def allowed_hosts(settings: ServiceSettings) -> frozenset[str]:
    """Names under which this installation answers, in lower case."""
    return frozenset(host.lower() for host in (*settings.allowed_hosts, settings.host, socket.gethostname()))


def host_name(header: str) -> str:
    """A Host header without its port, in lower case: ``[::1]:8765`` is ``[::1]``."""
    name, colon, port = header.lower().rpartition(":")
    return name if colon and port.isdigit() else header.lower()


def check_host(header: str, allowed: Iterable[str]) -> None:
    """Refuse names that are not ours, as a rebound DNS name would be."""
    if host_name(header) not in allowed:
        raise ProblemError(
            "unknown-host",
            TranslatableText(
                "host-unknown",
                "{header!r} is not a name of this installation: add it to TORCHYARD_ALLOWED_HOSTS of the service.",
                header=header[:100],
            ),
        )


def check_origin(method: str, headers: Headers) -> None:
    """Refuse what another site's page makes a browser send with its user's cookie."""
    if method in SAFE_METHODS:
        return
    origin = headers.get("origin")
    if origin is None:
        if "cookie" in headers and "authorization" not in headers:
            raise ProblemError(
                "forbidden",
                TranslatableText(
                    "needs-origin", "A change with a session cookie needs an Origin header; or use a token."
                ),
            )
    elif _place(origin) != headers.get("host", "").lower():
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "other-origin", "The origin {origin!r} is not this installation's address.", origin=origin[:100]
            ),
        )


def _place(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # brackets without an address between them
        return None


def body_limit(path: str, max_body: int) -> int | None:
    """Bytes that the body of a request to this path may have; None for streamed uploads."""
    if "/blobs/" in path and path.startswith(("/api/v1/agent/", "/api/v1/snapshots/")):
        return None
    if path == SIGN_IN:
        return MAX_SIGN_IN
    return MAX_BATCH if path.startswith(("/api/v1/agent/", "/api/v1/snapshots")) else max_body


async def admit(scope: Scope) -> None:
    """Refuse unknown callers before their bodies are read: parsing a large one would hold up everybody."""
    if scope["method"] in SAFE_METHODS or not scope["path"].startswith("/api/") or scope["path"] == SIGN_IN:
        return
    try:
        await current(Request(scope))
    except (OperationalError, PoolTimeoutError) as error:
        raise of_database(error) from error


def _too_large(limit: int) -> ProblemError:
    words = TranslatableText("body-size", "The body is larger than {most}: send less.", most=format_size(limit))
    return ProblemError("payload-too-large", words)


async def _drain(receive: Receive) -> None:
    drained = 0
    while drained < MAX_DRAINED:
        message = await receive()
        drained += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return


def _limited(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise HTTPException(413, _too_large(limit).detail)
        return message

    return counted


def _with_headers(send: Send, path: str) -> Send:
    linked, api = path.startswith(LINKED), path.startswith("/api/")

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = message["headers"]
            if linked:
                message["headers"] = [each for each in given if each[0] != b"cache-control"] + _RAW_LINKED_HEADERS
            else:
                headers = message["headers"] = [*given, *_RAW_HEADERS]
                if api and all(name != b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"private, no-cache"))
        await send(message)

    return sent


class RequestGuard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._hosts = allowed_hosts(settings)
        self._max_body = settings.max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope[RECEIVED] = now_us()
        send = _with_headers(send, scope["path"])
        limit = body_limit(scope["path"], self._max_body)
        try:
            self._check(scope, limit)
            await admit(scope)
        except ProblemError as error:
            await _drain(receive)
            await response(error)(scope, receive, send)
            return
        await self._app(scope, receive if limit is None else _limited(receive, limit), send)

    def _check(self, scope: Scope, limit: int | None) -> None:
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            raise ProblemError(
                "invalid-request",
                TranslatableText("address-nul", "The address contains NUL, which nothing here is named by."),
            )
        headers = Headers(scope=scope)
        check_host(headers.get("host", ""), self._hosts)
        check_origin(scope["method"], headers)
        length = headers.get("content-length", "")
        if limit is not None and length.isdigit() and int(length) > limit:
            raise _too_large(limit)
