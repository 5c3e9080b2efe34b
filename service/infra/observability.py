"""Numbers for Prometheus (``/metrics``)."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection, func, select
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.db.engine import Database
from service.db.models import Allocation, Device, Job, Node
from service.infra.dispatch import Dispatcher
from torchyard.states import JobState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PASS_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5)


class Counters:
    """Counters of the service; one registry per application, so that several can live in a process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.pass_seconds = Histogram(
            "torchyard_scheduler_pass_seconds",
            "Time of a scheduling pass.",
            buckets=_PASS_BUCKETS,
            registry=self.registry,
        )
        self.idle = Counter(
            "torchyard_gpu_idle_seconds",
            "GPU time unused while a waiting job that no quota holds back would have fitted: avoidable, kept for a "
            "blocked job, or reserved for others.",
            ["kind"],
            registry=self.registry,
        )
        for kind in ("avoidable", "kept", "reserved"):
            self.idle.labels(kind)
        self.leads = Gauge("torchyard_leads", "1 on the service that schedules and watches.", registry=self.registry)
        self.scheduler_errors = self._counter("torchyard_scheduler_errors", "Scheduling passes that failed.")
        self.monitor_errors = self._counter("torchyard_monitor_errors", "Rounds of the monitor that failed.")
        self.housekeeping_errors = self._counter("torchyard_housekeeping_errors", "Rounds of housekeeping that failed.")
        self.requests = Counter(
            "torchyard_http_requests",
            "Requests answered, by method, route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )

    def _counter(self, name: str, words: str) -> Counter:
        return Counter(name, words, registry=self.registry)

    def watch(self, db: Database, dispatcher: Dispatcher) -> None:
        """Add what is read from the database and the dispatcher when somebody asks."""
        self.registry.register(_Stored(db, dispatcher))

    def text(self) -> bytes:
        """Everything in Prometheus's text format."""
        return generate_latest(self.registry)


class Counted:
    """ASGI middleware that counts responses; routes by their pattern, so that ids make no series of their own."""

    def __init__(self, app: ASGIApp, counters: Counters) -> None:
        self._app = app
        self._requests = counters.requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "other")
                self._requests.labels(scope["method"], route, message["status"]).inc()
            await send(message)

        await self._app(scope, receive, counting)


class _Stored(Collector):
    def __init__(self, db: Database, dispatcher: Dispatcher) -> None:
        self._db = db
        self._dispatcher = dispatcher

    def describe(self) -> Iterator[Metric]:
        """Nothing beforehand: registering must not ask the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        with self._db.read() as tx:
            yield _jobs(tx)
            yield _gauge("torchyard_gpus", "GPUs and CPU slots that are present.", _present(tx))
            yield _gauge("torchyard_gpus_held", "GPUs and CPU slots that jobs hold.", _held(tx))
            yield _gauge("torchyard_nodes", "Nodes that are heard.", _heard(tx))
        nudges = CounterMetricFamily("torchyard_nudges", "Messages to nodes.", labels=["outcome"])
        nudges.add_metric(["sent"], self._dispatcher.sent)
        nudges.add_metric(["failed"], self._dispatcher.failed)
        yield nudges


def _gauge(name: str, words: str, value: int) -> Metric:
    return GaugeMetricFamily(name, words, value=value)


def _jobs(tx: Connection) -> Metric:
    rows = tx.execute(select(Job.state, func.count().label("jobs")).group_by(Job.state))
    counts = {row.state: row.jobs for row in rows}
    family = GaugeMetricFamily("torchyard_jobs", "Jobs by state.", labels=["state"])
    for state in JobState:
        family.add_metric([state.value], counts.get(state.value, 0))
    return family


def _present(tx: Connection) -> int:
    return tx.scalar(select(func.count()).select_from(Device).where(Device.present)) or 0


def _held(tx: Connection) -> int:
    held = select(Allocation.node, Allocation.uuid).where(Allocation.live).distinct().subquery()
    return tx.scalar(select(func.count()).select_from(held)) or 0


def _heard(tx: Connection) -> int:
    query = select(func.count()).select_from(Node).where(~Node.unreachable, Node.last_seen_us.is_not(None))
    return tx.scalar(query) or 0
