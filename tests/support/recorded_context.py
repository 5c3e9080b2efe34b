"""Context of the service without its HTTP side, which records what is sent, on a clock that tests turn."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.context import Context
from service.db.engine import Database
from service.estimation.forecasts import Estimator
from service.infra.broker_accounts import BrokerAccounts
from service.infra.dispatch import Dispatcher
from service.infra.effects import Effects
from service.infra.hub import Hub
from service.infra.shared_reads import SharedReads
from service.scheduler_cache.load import Loader
from service.settings import ServiceSettings
from service.storage.store import BlobStore
from tests.support.box import NOW


@dataclass
class Clock:
    """Wall clock in microseconds and monotonic clock in seconds, moved together by `sleep`."""

    us: int = NOW
    s: float = 1000.0

    def sleep(self, seconds: float) -> None:
        self.us += round(seconds * 1e6)
        self.s += seconds

    def set(self, seconds: float) -> None:
        """Set the wall clock alone, by so much: as NTP does, or whoever resumes a virtual machine."""
        self.us += round(seconds * 1e6)


@dataclass
class Recorder(Dispatcher):
    """A dispatcher that is never started: what waits in it is what was sent."""

    messages: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__("memory://", "test:")

    def launch(self, node: str, attempt_id: str) -> None:
        self.messages.append(("launch", node, attempt_id))

    def nudge(self, node: str) -> None:
        self.messages.append(("nudge", node))


class RecordingHub(Hub):
    """A hub that remembers which topics were notified."""

    def __init__(self) -> None:
        super().__init__()
        self.topics: list[str] = []

    def notify(self, *topics: str) -> None:
        self.topics += topics
        super().notify(*topics)


@dataclass
class RecordedContext:
    ctx: Context
    clock: Clock
    sent: list[tuple[str, ...]]
    woken: threading.Event
    topics: list[str]

    def forget(self) -> None:
        """Start anew what was sent, told and woken."""
        self.sent.clear()
        self.topics.clear()
        self.woken.clear()


@contextmanager
def recorded_context(db: Database, folder: Path, **changes: Any) -> Iterator[RecordedContext]:
    """Yield a context over `db`; settings as given."""
    clock, dispatcher, hub, woken, estimator = Clock(), Recorder(), RecordingHub(), threading.Event(), Estimator()
    settings = ServiceSettings(data=folder, database_url=db.url, broker_url="memory://", **changes)
    store = BlobStore(folder / "artifacts", settings.disk_floor)
    ctx = Context(
        settings=settings,
        db=db,
        hub=hub,
        store=store,
        dispatcher=dispatcher,
        installation="yard-test",
        broker_accounts=BrokerAccounts(settings.broker_url, "yard-test", "secret"),
        loader=Loader(settings.disk_floor, estimator, store.free),
        estimator=estimator,
        wake_scheduler=woken.set,
        reads=SharedReads(db.version),
        now_us=lambda: clock.us,
        monotonic=lambda: clock.s,
        started=clock.s,
    )
    db.on_commit(Effects(hub, dispatcher, woken.set).fire)
    yield RecordedContext(ctx, clock, dispatcher.messages, woken, hub.topics)
