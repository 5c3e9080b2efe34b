"""Publish nudges to the nodes through Celery, from a thread of its own: never in a request.

The state is the outbox: what is lost here is published again by the monitor, and the heartbeat's answer lists it too.
So a failure is counted and everything that waited behind it is dropped, instead of being kept and sent late.
"""

import logging
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

from celery import Celery

from torchyard.ids import AttemptId, now_us
from torchyard.wire import LAUNCH_TASK, NUDGE_TASK, PUBLISHED_HEADER, node_queue

#: Messages that may wait; beyond it (Redis hangs) new ones are dropped and counted.
MAX_WAITING = 10_000
#: Seconds to wait for the last message at the end.
STOP_S = 5

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NodeMessage:
    """A nudge to a node; equal ones that wait are sent once."""

    node: str
    task: str
    args: tuple[str, ...] = ()


def node_key_prefix(installation: str, node: str) -> str:
    """Return what the Redis keys of a node's queue begin with: those of no other node or installation do.

    It has none of the characters that mean something in a pattern of keys.
    """
    return f"torchyard:{installation}:{quote(node, safe='')}:"


def publisher(broker_url: str, prefix: str) -> Celery:
    """A Celery app that only sends: JSON, no results, short time-outs, no retries."""
    app = Celery("torchyard", broker=broker_url, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_publish_retry=False,
        broker_pool_limit=1,
        broker_connection_retry=False,
        broker_transport_options={
            "global_keyprefix": prefix,
            "socket_timeout": 2,
            "socket_connect_timeout": 2,
            "max_retries": 0,  # kombu's own reconnecting, which has no end by default
        },
    )
    return app


class Dispatcher:
    """Send `launch` and `nudge` messages to nodes; every call returns at once."""

    def __init__(self, broker_url: str, installation: str) -> None:
        self.sent = 0
        self.failed = 0
        self._app = publisher(broker_url, "")
        self._installation = installation
        #: One for each node, since all keys of a connection have one prefix.
        self._connections: dict[str, Any] = {}
        self._waiting: dict[NodeMessage, None] = {}  # a dict keeps the order and drops doubles
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="dispatcher", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the thread; calls before that wait for it."""
        self._thread.start()

    def stop(self) -> None:
        """Send what waits and end the thread; give up on a broker that hangs."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def launch(self, node: str, attempt_id: AttemptId) -> None:
        """Tell a node of an assigned attempt."""
        self._put(NodeMessage(node, LAUNCH_TASK, (attempt_id,)))

    def nudge(self, node: str) -> None:
        """Make a node ask for its orders at once."""
        self._put(NodeMessage(node, NUDGE_TASK))

    def _put(self, message: NodeMessage) -> None:
        with self._changed:
            if len(self._waiting) >= MAX_WAITING:
                self.failed += 1
                return
            self._waiting[message] = None
            self._changed.notify()

    def _run(self) -> None:
        while batch := self._take():
            self._send(batch)
        self._disconnect()

    def _take(self) -> list[NodeMessage]:
        """Return what waits, as soon as there is something; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            batch = list(self._waiting)
            self._waiting.clear()
            return batch

    def _send(self, batch: list[NodeMessage]) -> None:
        for done, message in enumerate(batch):
            try:
                self._publish(message)
            except Exception as error:  # noqa: BLE001  whatever the broker's client raises, the thread goes on
                self._drop(len(batch) - done, error)
                return
            self.sent += 1

    def _publish(self, message: NodeMessage) -> Any:
        if message.node not in self._connections:
            prefix = node_key_prefix(self._installation, message.node)
            self._connections[message.node] = self._app.connection_for_write(
                transport_options={"global_keyprefix": prefix}
            )
        return self._app.send_task(
            message.task,
            message.args,
            queue=node_queue(message.node),
            connection=self._connections[message.node],
            retry=False,
            ignore_result=True,
            headers={PUBLISHED_HEADER: now_us()},
        )

    def _drop(self, count: int, error: Exception) -> None:
        with self._changed:
            count += len(self._waiting)
            self._waiting.clear()
        self.failed += count
        _log.warning("Redis did not take %d nudges, which are sent again later: %s", count, error)
        self._disconnect()

    def _disconnect(self) -> None:
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            with suppress(Exception):  # it is broken already
                connection.release()
