"""Parts that the routes and the loops share: one object, made once by `service.app.create_app`."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from service.attempts.memory import Memory
from service.db.engine import Database
from service.db.models import ROLL_UP_AT
from service.db.unit_of_work import UnitOfWork
from service.estimation.forecasts import Estimator
from service.infra.broker_accounts import BrokerAccounts
from service.infra.dispatch import Dispatcher
from service.infra.hub import Hub
from service.infra.shared_reads import SharedReads
from service.infra.stored_points import StoredPoints
from service.infra.times import Clock
from service.jobs.written import WrittenJobs
from service.nodes.utilization import UtilizationCache
from service.scheduler_cache.load import Loader
from service.secrets.key_file import KeyFile
from service.settings import ServiceSettings
from service.storage.store import BlobStore
from service.telemetry.curves import CurveCache
from torchyard.ids import now_us


@dataclass(frozen=True, kw_only=True)
class Context:
    """The service's parts. `wake_scheduler` returns at once."""

    settings: ServiceSettings
    db: Database
    hub: Hub
    store: BlobStore
    dispatcher: Dispatcher
    installation: str
    broker_accounts: BrokerAccounts
    loader: Loader
    """Reader of the queue and the nodes."""
    wake_scheduler: Callable[[], None]
    reads: SharedReads
    """Reads that many watchers ask for."""
    written: WrittenJobs = field(default_factory=WrittenJobs)
    estimator: Estimator = field(default_factory=Estimator)
    """Knows how long jobs take."""
    memory: Memory = field(default_factory=Memory)
    curves: CurveCache = field(default_factory=CurveCache)
    """Metrics as charts of many jobs show them."""
    utilization: UtilizationCache = field(default_factory=UtilizationCache)
    """How busy all devices were, as the lanes show it."""
    stored_points: StoredPoints = field(default_factory=lambda: StoredPoints(ROLL_UP_AT))
    """Says when to look for series that are to be rolled up."""
    now_us: Clock = now_us
    monotonic: Callable[[], float] = time.monotonic
    started: float = field(default_factory=time.monotonic)

    @property
    def secret_keys(self) -> KeyFile:
        """Keys that secrets are encrypted with."""
        return KeyFile(self.settings.secret_key)

    def unit_of_work(self) -> AbstractContextManager[UnitOfWork]:
        """A write transaction at the present time; see `Database.unit_of_work`."""
        return self.db.unit_of_work(self.now_us())
