"""The Celery side of a worker: two short, idempotent tasks on the node's own queue.

The agent runs as a bootstep of the Celery *worker* (not of its consumer), so it starts, heartbeats and looks after
running attempts with Redis down too; Celery reconnects by itself for as long as it takes.
"""

import warnings
from collections.abc import Callable
from typing import Any, Final, Protocol

from celery import Celery, bootsteps, signals
from celery.exceptions import SecurityWarning

from torchyard import wire
from torchyard.ids import AttemptId

THREADS: Final = 4
TRANSPORT: Final = {"socket_timeout": 15, "socket_connect_timeout": 5, "health_check_interval": 10}


class NodeRuntime(Protocol):
    """The node's methods that the tasks and the bootstep call."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def launch(self, attempt: AttemptId, published_us: int | None = None) -> None: ...
    def nudge(self) -> None: ...


def make_app(broker_url: str, key_prefix: str, name: str, node: NodeRuntime, on_start: Callable[[], None]) -> Celery:
    """The Celery app of one node: consumes its queue and runs its agent.

    `on_start` is called in the main thread once Celery has set its signal handlers, before it looks for Redis.
    """
    app = Celery("torchyard", broker=broker_url, set_as_current=False)
    queue = wire.node_queue(name)
    app.conf.update(
        accept_content=["json"],
        broker_channel_error_retry=True,  # a Redis that refuses, for want of memory say, is one that is down
        broker_connection_max_retries=None,
        broker_connection_retry_on_startup=True,
        broker_transport_options={**TRANSPORT, "global_keyprefix": key_prefix},
        enable_utc=True,
        result_backend=None,
        task_acks_late=False,
        task_default_queue=queue,
        task_ignore_result=True,
        task_serializer="json",
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_prefetch_multiplier=1,
        worker_redirect_stdouts=False,
    )

    def launch(task: Any, attempt: AttemptId) -> None:
        node.launch(attempt, _published_us(task.request))

    app.task(launch, name=wire.LAUNCH_TASK, bind=True)
    app.task(node.nudge, name=wire.NUDGE_TASK)
    app.steps["worker"].add(_agent_step(node, on_start))
    return app


def _published_us(request: Any) -> int | None:
    """Return when the service published a message, as its header says; None from one that does not say so."""
    found = (request.headers or {}).get(wire.PUBLISHED_HEADER)
    return found if type(found) is int else None


def _agent_step(node: NodeRuntime, on_start: Callable[[], None]) -> type[Any]:
    class AgentStep(bootsteps.StartStopStep):  # type: ignore[misc]
        def start(self, _worker: Any) -> None:
            on_start()
            node.start()

        def stop(self, _worker: Any) -> None:
            node.stop()

        def terminate(self, _worker: Any) -> None:
            node.stop()

    return AgentStep


def make_worker(app: Celery, name: str, on_ready: Callable[[], None]) -> Any:
    """A Celery worker, ready to `start`; `on_ready` is called whenever it has begun to consume."""
    signals.worker_ready.connect(lambda **_: on_ready(), weak=False)
    # A receiver keeps Celery from changing the logging that `python -m worker` has set up.
    signals.setup_logging.connect(lambda **_: None, weak=False)
    # Celery minds root for pickle's sake; only JSON is accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    return app.Worker(
        hostname=f"torchyard@{name}",
        queues=[wire.node_queue(name)],
        pool="threads",
        concurrency=THREADS,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
