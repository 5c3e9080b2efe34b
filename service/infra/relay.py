"""Wake-ups of the other services on a PostgreSQL database, by its LISTEN and NOTIFY.

What a service tells is sent after its commit by a thread of its own, gathered for a moment; what others tell arrives in
another thread. Nothing is kept: after a connection was lost everything counts as changed (`hub.ANY`).
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from sqlalchemy.engine import make_url

from service.db.engine import connection_options
from service.infra.hub import ANY

#: To the service that leads: look at the queue.
SCHEDULER = "scheduler"
#: Tokens, users or projects have changed: what is remembered of them no longer counts.
TOKENS = "tokens"

CHANNEL = "torchyard"
#: Bytes of one message; PostgreSQL takes fewer than 8,000.
MAX_BYTES = 7_500
#: Topics that may wait while the database is away; beyond it everything counts as changed.
MAX_WAITING = 10_000
GATHER_S = 0.01
RETRY_S = 0.5
STOP_S = 5.0

_log = logging.getLogger(__name__)


def messages(sender: str, topics: Iterable[str]) -> Iterator[str]:
    """Yield what is sent: the sender and as many topics as fit, with blanks between."""
    message = sender
    for topic in topics:
        if len(message) + len(topic) >= MAX_BYTES:
            yield message
            message = sender
        message = f"{message} {topic}"
    if message != sender:
        yield message


class Relay:
    """Topics between the services on one database; every call returns at once. `received` is called in a thread."""

    def __init__(self, database_url: str, received: Callable[[frozenset[str]], object]) -> None:
        self._url = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._options: dict[str, Any] = connection_options(database_url)
        self._received = received
        self._id = secrets.token_hex(8)
        self._waiting: dict[str, None] = {}  # a dict keeps the order and drops doubles
        self._changed = threading.Condition()
        self._stopping = False
        self._listening = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep, args=(work,), name=name, daemon=True)
            for name, work in (("relay-listener", self._listen), ("relay-sender", self._send))
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self._listening.wait(STOP_S)  # what is told from now on is heard
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(STOP_S)

    def tell(self, *topics: str) -> None:
        """Wake the followers of topics at the other services."""
        if not topics:
            return
        with self._changed:
            self._put(dict.fromkeys(topics))
            self._changed.notify_all()

    def _put(self, topics: dict[str, None]) -> None:
        self._waiting |= topics
        if len(self._waiting) > MAX_WAITING:
            self._waiting = {ANY: None}

    def _keep(self, work: Callable[[Any], None]) -> None:
        """Do the work on a connection, and on another once that is lost, or a fault has ended the work."""
        import psycopg

        while not self._stopping:
            try:
                with psycopg.connect(self._url, autocommit=True, **self._options) as connection:
                    work(connection)
            except psycopg.Error as error:
                self._wait(_log.warning, "other services are not heard or told for a moment: %s", error)
            except Exception as error:  # noqa: BLE001 (without its thread a service never hears of the others again)
                self._wait(_log.exception, "other services are not heard or told for a moment: %s", error)

    def _wait(self, log: Callable[..., None], message: str, error: Exception) -> None:
        if not self._stopping:
            log(message, error)
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, RETRY_S)

    def _listen(self, connection: Any) -> None:
        connection.execute(f"LISTEN {CHANNEL}")
        if self._listening.is_set():
            self._received(frozenset({ANY}))
        self._listening.set()
        while True:
            # The sender's last message, to itself, ends the wait with the service.
            for message in connection.notifies(timeout=STOP_S / 2):
                sender, *topics = message.payload.split(" ")
                if sender != self._id:
                    self._received(frozenset(topics))
                elif not topics:
                    return
            if self._stopping:
                return

    def _send(self, connection: Any) -> None:
        while batch := self._take():
            try:
                for message in messages(self._id, batch):
                    self._notify(connection, message)
            except Exception:
                with self._changed:
                    self._put(batch)
                raise
            time.sleep(GATHER_S)
        self._notify(connection, self._id)

    def _notify(self, connection: Any, message: str) -> None:
        connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, message))

    def _take(self) -> dict[str, None]:
        """Return the topics that wait, as soon as there is one; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            batch, self._waiting = self._waiting, {}
            return batch
