"""The node agent: tells the service what this node holds, and makes what it holds what the service wants.

Everything is level-triggered: each heartbeat carries the whole inventory and its answer the whole desired state, so a
lost message or a restarted worker costs time, never truth. An attempt is started by whoever hears of it first, the
Celery task or a heartbeat; starting is idempotent. Every attempt on disk has one thread, which starts it, follows it
(`worker.forward.attempt`) and removes its folder when the service has everything.
"""

import logging
import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from torchyard import wire
from torchyard.ids import AttemptId
from worker.attempts import folder, unsent
from worker.attempts.folder import AttemptFolder
from worker.attempts.kept import KeptFiles
from worker.attempts.retained import RetainedFiles
from worker.attempts.starts import Heard
from worker.control.accounts import UnixAccounts
from worker.control.backoff import Backoff
from worker.exceptions import RequestRefusedError, UnavailableError, WorkerError
from worker.forward.attempt import Follower
from worker.forward.bringer import Bringer
from worker.forward.tools import FollowerTools
from worker.monitoring import processes, stacks
from worker.monitoring.inventory import Died, Status

#: Attempts that are prepared at the same time.
STARTS: Final = 8
#: How long one waits for the others, at most.
START_PATIENCE_S: Final = 30.0

#: A service may be restarted with another Redis or inbox between two heartbeats, so it is asked again this often.
RENEW_S: Final = 30.0

logger = logging.getLogger(__name__)


class AgentService(Protocol):
    """Requests that the agent itself makes to the control plane."""

    def heartbeat(self, message: wire.Heartbeat) -> wire.Orders: ...
    def stacks(self, attempt: AttemptId, dump: wire.StackDump) -> None: ...
    def outputs(self, attempt: AttemptId, report: wire.OutputReport) -> wire.Missing: ...


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine, as the agent sees it."""

    identity: wire.Identity
    attempts: Path
    devices: Callable[[], list[wire.Device]]
    scan: Callable[[], list[Status]]
    disk_free: Callable[[], int]
    #: Starts an attempt unless somebody has; raises `UnavailableError` when the service cannot be asked.
    start: Callable[[AttemptId, Heard], None]
    #: Who computes on a GPU that is not theirs.
    offenders: Callable[[], list[wire.Finding]] = list
    #: Kills what carries an attempt's id: for one whose folder, and with it the shim's ear, was taken away.
    sweep: Callable[[AttemptId], object] = processes.sweep
    #: Files of ended attempts that are too large for the store.
    kept: KeptFiles | None = None
    #: Files of ended attempts that the next attempts of their jobs want.
    retained: RetainedFiles | None = None
    #: Bytes that the disk keeps free, if the node's administrator has said; and in any case.
    own_floor: Callable[[], int | None] = lambda: None
    disk_floor: Callable[[], int] = lambda: 0
    #: The UNIX users that jobs can run as.
    accounts: UnixAccounts | None = None
    #: Reads the stacks of an attempt's processes, for an order with this serial.
    dump: Callable[[AttemptFolder, int], wire.StackDump] = stacks.dump


class Agent:
    """One node's agent. `register` makes the node known; `spawn` gives a function a thread."""

    def __init__(
        self,
        node: Machine,
        service: AgentService,
        register: Callable[[], wire.Registered],
        tools: FollowerTools,
    ) -> None:
        self._node = node
        self._service = service
        self._register = register
        self._tools = tools
        self._lock = threading.Lock()
        self._followers: dict[AttemptId, Follower | None] = {}
        #: Serial of the newest dump of an attempt that is made or sent.
        self._dumps: dict[AttemptId, int] = {}
        self._starts = threading.BoundedSemaphore(STARTS)
        self._beat: int | None = None
        self._registered: wire.Registered | None = None
        self._registered_at = 0.0
        self._backoff = Backoff()
        self._stopped = False
        self._bringer = Bringer(node.kept, service, tools.blobs, tools.spawn)

    def launch(self, attempt: AttemptId, published_us: int | None = None) -> None:
        """Start an attempt in the background, unless it is held already; the service's message of it may say when it
        was published.
        """
        try:
            self._look_after(AttemptFolder(self._node.attempts, attempt), Heard(published_us=published_us))
        except ValueError as error:
            logger.warning("a launch message is passed over: %s", error)

    def register_soon(self) -> None:
        """Register anew with the next heartbeat: what a registration tells has changed."""
        self._registered_at = -math.inf

    def stop(self) -> None:
        """Let go of everything; trainings go on."""
        with self._lock:
            self._stopped = True
            held = list(self._followers.values())
        for follower in held:
            if follower is not None:
                follower.stop()

    def step(self) -> float:
        """Register if needed, send one heartbeat and obey; return the seconds until the next."""
        try:
            registered = self._register_if_due()
            more = self.beat()
        except (UnavailableError, OSError) as error:  # OSError: the attempts' disk is away
            logger.warning("%s", error)
            return self._backoff.next()
        except RequestRefusedError as error:
            logger.error("%s; registering again", error)
            self._registered = None
            return self._backoff.next()
        self._backoff.reset()
        return 0.0 if more else registered.heartbeat_s

    def _register_if_due(self) -> wire.Registered:
        now = self._tools.now()
        if self._registered is None or now - self._registered_at >= RENEW_S:
            if self._registered is None:
                logger.info("registering with the service")
            self._registered = self._register()
            self._registered_at = now
        return self._registered

    def beat(self) -> bool:
        """One heartbeat; whether its answer asks for something that the next one should tell at once.

        Raises `UnavailableError`, `RequestRefusedError`.
        """
        # Read before the inventory is begun: the service judges by it which claims the inventory must show.
        beat = self._beat
        statuses, accounts = self.adopt(), self._node.accounts
        retained, offenders = self._retained(), self._node.offenders()
        orders = self._service.heartbeat(
            wire.Heartbeat(
                identity=self._node.identity,
                devices=self._node.devices(),
                attempts=[_attempt_report(status) for status in statuses],
                disk_free=self._node.disk_free(),
                disk_floor=self._node.own_floor(),
                offenders=[each.message for each in offenders],
                offender_findings=offenders,
                kept=self._node.kept.attempts() if self._node.kept is not None else [],
                retained=retained,
                accounts=accounts.known if accounts is not None else None,
                beat=beat,
            )
        )
        self._beat = orders.beat
        self._carry_out(orders)
        return accounts is not None and accounts.ask(orders.accounts)

    def _retained(self) -> list[AttemptId]:
        """The attempts whose files wait here, once they leave the disk some room above the floor."""
        if self._node.retained is None:
            return []
        self._node.retained.make_room(self._node.disk_free, 2 * self._node.disk_floor())
        return self._node.retained.attempts()

    def adopt(self) -> list[Status]:
        """Look after every attempt on disk; return the inventory."""
        statuses = self._node.scan()
        for status in statuses:
            self._look_after(AttemptFolder(self._node.attempts, status.attempt))
        return statuses

    def _carry_out(self, orders: wire.Orders) -> None:
        for attempt in orders.assigned:
            self.launch(attempt)
        for order in orders.orders:
            self._pass_order(order)
        for wanted in orders.dumps:
            self._begin_dump(wanted)
        for attempt in orders.forget:
            self._forget(attempt)
        self._bringer.obey(orders)

    def _pass_order(self, order: wire.AttemptOrder) -> None:
        """Pass an order to the shim, once."""
        if order.action is wire.Action.RUN:
            return
        try:
            where = AttemptFolder(self._node.attempts, order.attempt)
            if where.read_command() == order.model_dump(mode="json"):
                return
            if folder.order(where, order):
                logger.info("%s: asked to %s (%s)", order.attempt, order.action, order.reason or "no reason given")
            elif order.action is not wire.Action.CHECKPOINT:
                self._tools.spawn(lambda: self._sweep(order.attempt))
        except (OSError, ValueError) as error:
            logger.warning("%s: the order to %s waits: %s", order.attempt, order.action, error)

    def _sweep(self, attempt: AttemptId) -> None:
        if self._node.sweep(attempt):
            logger.warning("%s: some of its processes outlive SIGKILL", attempt)

    def _begin_dump(self, wanted: wire.DumpOrder) -> None:
        """Read the stacks in the background, once for each serial; one that could not be sent is read again."""
        with self._lock:
            if self._dumps.get(wanted.attempt) == wanted.serial:
                return
            self._dumps[wanted.attempt] = wanted.serial
        self._start_thread(wanted.attempt, lambda: self._send_stacks(wanted), self._dumps)

    def _send_stacks(self, wanted: wire.DumpOrder) -> None:
        try:
            where = AttemptFolder(self._node.attempts, wanted.attempt)
            self._service.stacks(wanted.attempt, self._node.dump(where, wanted.serial))
        except (OSError, ValueError, RequestRefusedError) as error:
            logger.warning("%s: its stacks are not told: %s", wanted.attempt, error)
        except UnavailableError:
            with self._lock:
                self._dumps.pop(wanted.attempt, None)

    def _start_thread(self, attempt: AttemptId, function: Callable[[], None], begun: dict[AttemptId, Any]) -> None:
        """Give a function a thread, or take it from what was begun: then the next heartbeat begins it again."""
        try:
            self._tools.spawn(function)
        except RuntimeError as error:  # of Python's, where the system has no thread left
            logger.warning("%s: looked after later: %s", attempt, error)
            with self._lock:
                begun.pop(attempt, None)

    def _forget(self, attempt: AttemptId) -> None:
        with self._lock:
            self._dumps.pop(attempt, None)
            follower = self._followers.get(attempt)
        if follower is not None:
            follower.stop()
        try:
            remove(AttemptFolder(self._node.attempts, attempt))
            if self._node.retained is not None:
                self._node.retained.discard(attempt)
        except ValueError as error:
            logger.warning("%s", error)

    def _look_after(self, where: AttemptFolder, heard: Heard | None = None) -> None:
        """Look after an attempt; one that was heard of just now is new."""
        attempt = where.attempt_id
        with self._lock:
            if self._stopped or attempt in self._followers:
                return
            self._followers[attempt] = None
        self._start_thread(attempt, lambda: self._start_and_follow(where, heard), self._followers)

    def _start_and_follow(self, where: AttemptFolder, heard: Heard | None) -> None:
        """The life of one attempt on this node, in a thread of its own."""
        try:
            fresh = not where.started()
            # One that the inventory saw may have been settled and removed since.
            if fresh and not where.has_result() and (heard is not None or where.path.exists()):
                self._start(where, heard or Heard())
            if where.started() or where.has_result():
                self._follow(where, fresh=fresh)
        except (OSError, WorkerError) as error:
            logger.warning("%s: not started now: %s", where.attempt_id, error)
        except Exception:
            logger.exception("%s: not started now", where.attempt_id)
        finally:
            with self._lock:
                self._followers.pop(where.attempt_id, None)
                self._dumps.pop(where.attempt_id, None)

    def _start(self, where: AttemptFolder, heard: Heard) -> None:
        # Folders on a file server that hangs must not keep the others from starting for ever.
        waited = self._starts.acquire(timeout=START_PATIENCE_S)
        try:
            self._node.start(where.attempt_id, heard)
        finally:
            if waited:
                self._starts.release()
        if where.started():
            logger.info("%s: started", where.attempt_id)

    def _follow(self, where: AttemptFolder, *, fresh: bool) -> None:
        follower = Follower(where, self._tools, fresh=fresh)
        with self._lock:
            if self._stopped:
                return
            self._followers[where.attempt_id] = follower
        if follower.run():
            remove(where, self._node.retained if follower.awaited else None)
            logger.info("%s: everything is with the service", where.attempt_id)


def _attempt_report(status: Status) -> wire.AttemptReport:
    """A dead shim's attempt is about to be finalized as lost: its result is on the way."""
    phase = wire.Phase.ENDED if isinstance(status.phase, Died) else status.phase
    return wire.AttemptReport(
        attempt=status.attempt,
        phase=phase,
        started_us=status.started_us,
        devices=list(status.devices),
        held_us=status.held_us,
        unjoined=status.unjoined,
    )


def remove(where: AttemptFolder, retained: RetainedFiles | None = None) -> None:
    """Remove an attempt's folder, unless something of it lives; with `retained` the job's files stay there.

    One of which not all came to the service is moved aside.
    """
    try:
        descriptor = where.try_lock()
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("%s: its folder cannot be removed: %s", where.attempt_id, error)
        return
    if descriptor is None:
        logger.warning("%s: kept, since it is still running", where.attempt_id)
        return
    try:
        if not unsent.keep(where) and (retained is None or not retained.retain(where)):
            where.remove()
    except OSError as error:
        logger.warning("%s: its folder cannot be removed: %s", where.attempt_id, error)
    finally:
        os.close(descriptor)
