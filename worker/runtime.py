"""One worker's components, put together, and the threads that drive them."""

import json
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from torchyard import home, settings_in_use, settingsfile, wire
from torchyard.failures import fingerprints
from torchyard.ids import AttemptId
from torchyard.injob.cadence import FLOOR
from torchyard.stack import access
from worker.agent import Agent, Machine
from worker.attempts.folder import AttemptFolder, finish_removals
from worker.attempts.kept import KeptFiles
from worker.attempts.retained import RetainedFiles
from worker.control import capabilities, registration
from worker.control.accounts import UnixAccounts
from worker.control.client import ControlPlaneClient
from worker.control.pacer import Pacer
from worker.control.registration import Registration
from worker.devices import faults, nvml, offenders, trespass
from worker.devices.discovery import discover
from worker.devices.locks import DeviceLocks
from worker.devices.notify import OwnerNotifier
from worker.devices.telemetry import Sampler
from worker.devices.topology import CachedTopology
from worker.devices.xids import Xids
from worker.forward.blobs import BlobSender
from worker.forward.samples import EVERY_S, SampleForwarder
from worker.forward.tools import FollowerTools
from worker.launching import environment, rendezvous, warm
from worker.launching.identity import runs_as
from worker.launching.inherited import inherited
from worker.launching.launcher import AttemptLauncher
from worker.launching.learnt import LearntModules
from worker.launching.shims import ShimServer
from worker.limits import node
from worker.monitoring import inventory, watch
from worker.monitoring.user_disk import UserDisk
from worker.settings import WorkerSettings

logger = logging.getLogger(__name__)


class Runtime:
    """The node's half of a worker; Celery's half (`worker.app`) calls `start`, `stop`, `launch` and `nudge`.

    `moved` is called when the service names another Redis than the one in use.
    """

    def __init__(self, settings: WorkerSettings, *, moved: Callable[[], None]) -> None:
        make_attempts_root(settings.attempts)
        self._settings = settings
        self._moved = moved
        self._used: wire.Registered | None = None
        self._nvml = nvml.load()
        self._xids = Xids(self._nvml)
        self._topology = CachedTopology(self._nvml) if self._nvml is not None else None
        self._locks = DeviceLocks(settings.home)
        self._identity = registration.identity(settings.home)
        self._limits = node.of_worker(
            self._identity.home_id,
            settings.process_limit,
            cgroups=settings.cgroups,
            others=self._other_gpus if settings.confine_gpus and self._nvml is not None else None,
        )
        logger.info("%s", self._limits)
        with suppress(OSError):  # a full disk: the log and the registration say it
            (settings.home / home.LIMITS_FILE).write_text(f"{self._limits}\n")
        self._fork_servers = (
            warm.ForkServers(
                log=settings.home / "forkserver.log",
                limits=self._limits,
                learnt=LearntModules(path=settings.home / "learnt.json"),
            )
            if settings.warm_start
            else None
        )
        self._shims = ShimServer(
            log=settings.home / "shims.log", environment=inherited(dict(os.environ), settings.job_env)
        )
        self._notifier = OwnerNotifier(settings.name, settings.notify_command, spawn)
        self._pacer = Pacer()
        self._stopped = threading.Event()
        self._control = ControlPlaneClient(settings.address, settings.token)
        self._blobs = BlobSender(self._control)
        self.registration = Registration(settings.home / "registration.json", self._register)
        self._sampler = Sampler(self._nvml, self._scan)
        #: Who was on GPUs that are not theirs at the last look, by card and process.
        self._seen: set[tuple[str, int]] = set()
        self._agent = self._make_agent()
        self._samples = SampleForwarder(self._sampler.sample, self._control)

    def _make_agent(self) -> Agent:
        launcher = AttemptLauncher(
            attempts=self._settings.attempts,
            control=self._control,
            injob=environment.install_injob(self._settings.home),
            one_trust_domain=self._settings.one_trust_domain,
            root_jobs=self._settings.root_jobs,
            token_file=self._settings.token_file,
            present=self._discover,
            lock_descriptors=self._locks.descriptors,
            passed=self._settings.job_env,
            disk_floor=self._disk_floor,
            limits=self._limits,
            fork_servers=self._fork_servers,
            shims=self._shims,
            own_address=lambda interface: rendezvous.own_address(self._settings.address(), interface),
        )
        tools = FollowerTools(
            service=self._control,
            blobs=self._blobs,
            watch=watch.of_shim,
            finalize_lost=launcher.finalize_lost,
            changed=self._pacer.change,
            spawn=spawn,
            xid=self._xids.of,
            gpu_memory=self._sampler.gpu_memory_peak,
            limits=lambda: self._settings.limits,
            disk_limit=lambda: self._settings.disk_limit,
            user_disk=UserDisk(lambda: self._settings.user_disk_limit),
            learn=self._learn,
        )
        this = Machine(
            identity=self._identity,
            attempts=self._settings.attempts,
            devices=self._devices,
            scan=lambda: inventory.whole(self._settings.attempts),
            offenders=self._find_offenders,
            disk_free=lambda: registration.disk_free(self._settings.attempts),
            start=launcher.start,
            kept=KeptFiles(self._settings.home),
            retained=RetainedFiles(self._settings.home),
            own_floor=lambda: self._settings.disk_floor,
            disk_floor=lambda: FLOOR if (told := self._disk_floor()) is None else told,
            accounts=UnixAccounts(self._runs_as(), spawn),
        )
        return Agent(this, self._control, self._renew, tools)

    def _learn(self, launch: Mapping[str, Any], folder: AttemptFolder, owner: int) -> None:
        if self._fork_servers is not None:
            spawn(partial(self._fork_servers.learn, launch, folder, owner))

    def _runs_as(self) -> Callable[[str], bool]:
        settings = self._settings
        return partial(
            runs_as,
            one_trust_domain=settings.one_trust_domain,
            root_jobs=settings.root_jobs,
            token_file=settings.token_file,
            attempts=settings.attempts,
        )

    def _disk_floor(self) -> int | None:
        """The node's own setting, else the service's policy as it was told last."""
        if self._settings.disk_floor is not None or self._used is None:
            return self._settings.disk_floor
        return self._used.disk_floor

    def use(self, registered: wire.Registered) -> None:
        """Work with this answer of the service from now on."""
        self._used = registered
        self._blobs.use_inbox(registered.inbox, registered.inbox_probe)

    def start(self) -> None:
        """Start the agent's threads."""
        self._agent.adopt()
        spawn(lambda: finish_removals(self._settings.attempts))
        spawn(lambda: self._limits.sweep(lambda attempt: AttemptFolder(self._settings.attempts, attempt).locked()))
        spawn(self._shims.prepare)
        spawn(self._heartbeats)
        spawn(self._sampling)
        spawn(lambda: self._xids.listen(self._stopped))
        if self._fork_servers is not None:
            spawn(partial(self._fork_servers.stay_trim, self._stopped))

    def stop(self) -> None:
        """End the threads soon; trainings go on."""
        self._stopped.set()
        self._pacer.stop()
        self._agent.stop()
        self._shims.close()

    def reload(self, read: Callable[[], WorkerSettings]) -> None:
        """Read the settings anew: what can count at once does; the rest is named. Wrong ones change nothing."""
        outcome: dict[str, object] = {"at": datetime.now(UTC).isoformat()}
        try:
            fresh = read()
        except ValueError as error:
            logger.error("the settings stay as they were: %s", error)
            outcome["error"] = str(error)
        else:
            changes = settingsfile.changes(self._settings.given, fresh.given)
            self._settings = self._settings.take_over(fresh)
            self._notifier.command = fresh.notify_command
            self._agent.register_soon()
            self._pacer.change()
            self.publish_settings()
            logger.info("settings read anew: changed: %s", ", ".join(changes.at_once) or "none")
            if changes.restart:
                logger.warning("not taken up before a restart: %s", ", ".join(changes.restart))
            outcome |= {"changed": changes.at_once, "restart": changes.restart}
        home.write_private(self._settings.home / home.RELOAD_FILE, json.dumps(outcome))

    def publish_settings(self) -> None:
        """Let `yard config check` know what this worker has."""
        settings_in_use.publish(self._settings.home, self._settings.given, self._settings.options)

    def launch(self, attempt_id: AttemptId, published_us: int | None = None) -> None:
        """An attempt has been assigned to this node."""
        self._agent.launch(attempt_id, published_us)

    def nudge(self) -> None:
        """The service has new orders."""
        self._pacer.nudge()

    def _heartbeats(self) -> None:
        pause = 0.0
        while self._pacer.wait(pause):
            try:
                pause = self._agent.step()
            except Exception:
                logger.exception("a heartbeat failed and is tried again")
                pause = 1.0

    def _sampling(self) -> None:
        while not self._stopped.wait(EVERY_S):
            try:
                self._look_for_offenders()
                self._samples.step()
            except Exception:
                logger.exception("no sample was taken")

    def _look_for_offenders(self) -> None:
        """Have a heartbeat come at once if somebody has begun to use a GPU that is not theirs."""
        before = self._seen
        self._seen = {(each.uuid, each.pid) for each in self._offenders()}
        if self._seen - before:
            self._pacer.nudge()

    def _register(self) -> wire.Registered:
        settings = self._settings
        message = registration.registration(
            settings.name,
            self._identity,
            self._devices(),
            settings.labels,
            capabilities.capabilities(one_trust_domain=settings.one_trust_domain, limits=self._limits.enforced),
            self._limits.unenforced,
        )
        return self._control.register(message)

    def _renew(self) -> wire.Registered:
        registered = self.registration.renew()
        before = self._used
        self.use(registered)
        if before is not None and self._consumes(before) != self._consumes(registered):
            logger.warning("the service names another Redis, or another account there: starting again")
            self._moved()
        return registered

    def _consumes(self, registered: wire.Registered) -> tuple[str, str]:
        return registration.broker_url(registered, self._settings.redis_url), registered.broker_key_prefix

    def _scan(self) -> list[inventory.Status]:
        return inventory.scan(self._settings.attempts)

    def _discover(self) -> list[wire.Device]:
        return discover(self._nvml, self._settings.cpu_slots, topology=self._topology)

    def _other_gpus(self, own: Sequence[str]) -> list[tuple[int, int]]:
        """The device files of the GPUs that are not among these."""
        files = {} if self._nvml is None else nvml.device_files(self._nvml)
        return [numbers for uuid, numbers in files.items() if uuid not in own]

    def _devices(self) -> list[wire.Device]:
        found = self._offenders()
        devices = offenders.keep_off(self._locks.apply(self._discover()), found)
        devices = self._settings.foreign.apply(devices, found)
        return devices if self._nvml is None else faults.mark(devices, faults.find(self._nvml, self._xids.newest()))

    def _find_offenders(self) -> list[wire.Finding]:
        """Tell who uses GPUs that are not theirs; end attempts that do, if that is the policy."""
        if self._nvml is None:
            return []
        found = trespass.find(self._nvml, self._scan)
        if found and self._settings.trespass == "stop":
            self._stop(trespass.confirmed(found, trespass.find(self._nvml, self._scan)))
        offending = self._offenders()
        self._notifier.see(offending)
        over = (each.finding() for each in found)
        return [*(each.finding() for each in offending), *(each for each in over if each is not None)]

    def _stop(self, found: Sequence[trespass.Trespass]) -> None:
        for each in found:
            logger.warning("%s: it is stopped", each)
            with suppress(FileNotFoundError):  # it has ended meanwhile
                AttemptFolder(self._settings.attempts, each.attempt).write_failure(
                    fingerprints.GPU_TRESPASS, each.words
                )

    def _offenders(self) -> list[offenders.Offender]:
        return [] if self._nvml is None else offenders.find(self._nvml, self._scan)


def make_attempts_root(attempts: Path) -> None:
    """Make the folder that holds one folder for each attempt; say what keeps other accounts from reaching theirs.

    A worker that runs as root makes it so that they can enter it but not see what others have there.
    """
    attempts.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        attempts.chmod(0o711)
        problem = access.attempts_problem(attempts)
        if problem is not None:
            logger.error("%s", problem)


def spawn(function: Callable[[], Any]) -> None:
    """Run a function in a thread that does not keep the worker from ending."""
    threading.Thread(target=function, daemon=True).start()
