"""uvicorn with a quick end: streams are told to finish before the server waits for them."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from service.api.connections import TimedConnection, raise_file_limit
from service.context import Context
from service.tls import Certificate

#: Seconds that requests under way may take at the end.
GRACE_S = 5


class Server(uvicorn.Server):
    """A server that closes the hub first, so that followers of logs and long polls return."""

    def __init__(self, app: FastAPI, certificate: Certificate | None = None, *, lifespan: bool = True) -> None:
        limit = raise_file_limit()
        super().__init__(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=TimedConnection,
                backlog=min(2048, limit // 8),  # all that wait are accepted at once, before any can be closed
                ws="none",
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=app.state.context.settings.behind_proxy,
                timeout_graceful_shutdown=GRACE_S,
                timeout_keep_alive=75,
                lifespan="on" if lifespan else "off",
            )
        )
        if certificate is not None:
            self.config.load()
            self.config.ssl = certificate.context
        self._context: Context = app.state.context

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the process: uvicorn would end it by the same signal again before anything is tidied up."""
        yield

    def stop(self) -> None:
        """Ends the server, from any thread; told again, it no longer waits for requests under way."""
        self._context.hub.close()
        self.force_exit = self.should_exit
        self.should_exit = True


def bind(host: str, port: int) -> socket.socket:
    """A listening address; port 0 takes a free one. OSError if it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Event loops switch Nagle's algorithm off only for sockets that name TCP; left on, it costs 40 ms an answer.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError:
        listening.close()
        raise
    return listening


def address(listening: socket.socket, scheme: str = "http") -> str:
    """The URL of a bound socket; one that listens everywhere is reached at loopback."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
