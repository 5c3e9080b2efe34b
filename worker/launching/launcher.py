"""Starting an attempt on this node: exactly once, whatever is killed or repeated on the way.

Under the folder's lock: the nonce, the claim by it, all that the job needs in its folder, the other nodes' being ready,
``launch.json``, `started`, and the shim, which inherits the lock (`spawn`). What ends before `started` is done again by
the next call, with the same nonce; after it, an attempt whose lock is free is dead (`AttemptLauncher.finalize_lost`).
Where it cannot start, a result says why; an attempt that nobody wants any more leaves no folder.
"""

import errno
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from torchyard.errnos import NO_SPACE
from torchyard.ids import AttemptId, now_us
from torchyard.injob import layout
from torchyard.spec import JobSpec
from torchyard.spec import Launcher as How
from torchyard.wire import Device, Go, Launch, Prepared, Result, ResultKind, StartMark
from worker import shim
from worker.attempts import files, tree
from worker.attempts.folder import AttemptFolder
from worker.attempts.starts import Heard, StartClock
from worker.exceptions import DeviceGoneError, StoppedError, UnavailableError, UnusableError, UnwantedError
from worker.launching import (
    argv,
    carry,
    environment,
    interpreter,
    local_rank,
    lost,
    prepare,
    rendezvous,
    resuming,
    warm,
)
from worker.launching.identity import check_access, identity
from worker.launching.inherited import inherited
from worker.launching.record import RANK, PreparedAttempt, launch_record
from worker.launching.shims import ShimServer
from worker.launching.spawn import ShimStarter
from worker.limits.node import NodeLimits
from worker.monitoring import processes
from worker.shim.files import DISK_FULL, steady_us
from worker.trackers import store, translate

ELASTIC = Path(shim.__file__).parent / "elastic.py"
#: How often it is asked whether all nodes are prepared.
ASK_S = 0.5


class LaunchService(Protocol):
    """Requests that the launcher makes. All may raise when the service does not answer: the attempt starts later."""

    def claim(self, attempt: AttemptId, nonce: str) -> Launch | None:
        """Return all that is needed to start; None when another nonce has the attempt or it is void."""

    def launch(self, attempt: AttemptId) -> Launch | None:
        """Return the same as it is now; None when the service no longer wants it started here."""

    def secrets(self, attempt: AttemptId, nonce: str) -> dict[str, str]:
        """Return the values of the job's secrets by name; raise SecretsError if they cannot be had."""

    def prepared(self, attempt: AttemptId, where: Prepared) -> Go | None:
        """Report that this member of the attempt could start; return whether all could, None when it is void."""

    def fetch_blob(self, sha256: str, target: Path) -> None:
        """Write the blob to the target; raise MissingBlobError when the store no longer has it."""


def no_locks(_uuids: Sequence[str]) -> list[int]:
    """Return nothing, for nodes without GPUs."""
    return []


@dataclass(frozen=True, kw_only=True)
class AttemptLauncher:
    """Starts attempts of one worker home. Every method may be called from any thread, any number of times."""

    attempts: Path
    control: LaunchService
    injob: Path
    """From `environment.install_injob`."""
    python: Path = Path(sys.executable)
    """The worker's interpreter."""
    cpus: int = os.cpu_count() or 1
    """Cores of the node; a rank whose spec names no `cpus` has its device's share of them."""
    one_trust_domain: bool = False
    """All users may act as the worker's own UNIX user."""
    root_jobs: bool = False
    """Jobs of people whose account is root run as root."""
    token_file: Path | None = None
    """The node's: no job runs as the account that owns it."""
    present: Callable[[], Sequence[Device]] | None = None
    """The node's devices now: a GPU's index may have changed since the attempt was assigned."""
    lock_descriptors: Callable[[Sequence[str]], list[int]] = no_locks
    """Open locks of GPUs, by UUID (`devices.locks.DeviceLocks.descriptors`): the shim keeps them too."""
    own_environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    passed: Sequence[str] = ()
    """Names in it that jobs get besides those of `inherited`."""
    disk_floor: Callable[[], int | None] = lambda: None
    """Bytes that the node's disk keeps free, if anybody has said."""
    limits: NodeLimits = field(default_factory=NodeLimits)
    """What an attempt may use of the node."""
    fork_servers: warm.ForkServers | None = None
    """Servers that shims are forked from; None: each is started anew."""
    shims: ShimServer | None = None
    """Forks shims that are not forked from a fork server; None: each is started anew."""
    own_address: Callable[[str | None], str] = rendezvous.default_address
    """The address by which other nodes reach this one, through an interface if one is named."""

    def start(self, attempt_id: AttemptId, heard: Heard | None = None) -> None:
        """Bring an attempt to life unless somebody has, or the service no longer wants it.

        Returns when the job's first instruction has run (``shim.json`` is there), or never will (``result.json`` is).
        Raises what the control plane raises, and OSError; a later call takes up where this one ended.
        """
        if not self.attempts.exists():
            # Another in its place, on whatever disk lies below, would look like this node's with all attempts dead.
            raise FileNotFoundError(errno.ENOENT, "the folder of attempts is away", str(self.attempts))
        folder = AttemptFolder(self.attempts, attempt_id)
        clock = StartClock(heard=heard or Heard())
        folder.create()
        descriptor = folder.try_lock()
        if descriptor is None:
            return
        try:
            self._start_locked(folder, descriptor, clock)
        finally:
            os.close(descriptor)

    def _start_locked(self, folder: AttemptFolder, descriptor: int, clock: StartClock) -> None:
        if folder.started() or folder.has_result():
            return
        folder.reserve_result()  # on a full disk nothing is claimed
        nonce = folder.nonce()
        clock.mark(StartMark.CLAIMING)
        launch = self.control.claim(folder.attempt_id, nonce)
        if launch is None:
            folder.remove()
            return
        clock.mark(StartMark.CLAIMED)
        claimed = {"claimed_steady_us": steady_us(), "boot_id": processes.boot_id()}
        try:
            folder.reserve_result(launch.spec.local_world_size)
            prepared = self._prepare_or_conclude(folder, launch)
            if prepared is not None:
                self._launch(folder, descriptor, prepared, claimed, clock)
        except OSError as error:
            if error.errno not in NO_SPACE or folder.started():
                raise
            folder.write_result(Result(kind=ResultKind.LOST, message=DISK_FULL, disk_full=True, ended_us=now_us()))

    def _prepare_or_conclude(self, folder: AttemptFolder, launch: Launch) -> PreparedAttempt | None:
        try:
            return self._prepare(folder, launch)
        except UnwantedError:
            folder.remove()
        except StoppedError as error:
            folder.write_result(
                Result(kind=ResultKind.KILLED, stop=folder.stop_asked(), message=str(error), ended_us=now_us())
            )
        except UnusableError as error:
            folder.write_result(Result(kind=ResultKind.UNUSABLE, message=str(error), ended_us=now_us()))
        return None

    def _launch(
        self,
        folder: AttemptFolder,
        descriptor: int,
        prepared: PreparedAttempt,
        claimed: dict[str, Any],
        clock: StartClock,
    ) -> None:
        held = files.hold(folder.temporary)
        try:
            record = self._launch_record(folder, prepared)
            translate.prepare(folder, record, prepared.who.uid if prepared.who else os.getuid())
            folder.write_launch(record | claimed)
            folder.mark_started()
            carry.release(folder, prepared.launch.carry)
            prepare.let_in(folder, prepared.who)
            kept = [descriptor] if held is None else [descriptor, held]
            kept += self.lock_descriptors([device.uuid for device in prepared.launch.devices])
            clock.mark(StartMark.PREPARED)
            shims = self._shim_starter()
            cold_reason = shims.start(folder, record, kept, prepared.secrets)
            with suppress(OSError):  # it runs by now, whether or not there is room to tell how it started
                clock.write(folder, cold_reason, None if cold_reason else shims.preloaded(record))
        finally:
            if held is not None:
                os.close(held)

    def _shim_starter(self) -> ShimStarter:
        environment = inherited(self.own_environment, self.passed)
        return ShimStarter(
            python=self.python, environment=environment, fork_servers=self.fork_servers, shims=self.shims
        )

    def _prepare(self, folder: AttemptFolder, launch: Launch) -> PreparedAttempt:
        """Lay everything out and wait for the other nodes. Raises UnwantedError, StoppedError and UnusableError."""
        launch = self._await_settled(folder, launch)
        present = launch.devices if self.present is None else self.present()
        launch = with_present(launch, present)
        prepared = self._lay_out(folder, launch, self._threads(launch, len(present)))
        go = self._await_members(folder, launch)
        limits = self.limits.create(folder.attempt_id, launch.spec.resources, launch.devices)
        names = launch.spec.secrets
        secrets = self.control.secrets(folder.attempt_id, folder.nonce()) if names else {}
        return replace(prepared, go=go, limits=limits, secrets=secrets)

    def _await_settled(self, folder: AttemptFolder, launch: Launch) -> Launch:
        """Wait until all that the attempt before has left is known."""
        while True:
            _check_not_stopped(folder)
            if launch.carry is None or launch.carry.settled:
                return launch
            time.sleep(ASK_S)
            newer = self.control.launch(folder.attempt_id)
            if newer is None:
                raise UnwantedError
            launch = newer

    def _await_members(self, folder: AttemptFolder, launch: Launch) -> Go:
        """Wait until all nodes are prepared. Killed here, it is all done again."""
        resources = launch.spec.resources
        if resources.nodes == 1:
            return Go(go=True)
        with rendezvous.reserved_port() as port:
            where = Prepared(address=self.own_address(resources.network_interface), port=port)
            while True:
                answer = self._report_prepared(folder.attempt_id, where)
                if answer is None:
                    raise UnwantedError
                if answer.go:
                    return answer
                _check_not_stopped(folder)
                time.sleep(ASK_S)

    def _report_prepared(self, attempt: AttemptId, where: Prepared) -> Go | None:
        try:
            return self.control.prepared(attempt, where)
        except UnavailableError:
            return Go(go=False)  # the others wait as well

    def _lay_out(self, folder: AttemptFolder, launch: Launch, threads: int) -> PreparedAttempt:
        spec = launch.spec
        accepted = {"one_trust_domain": self.one_trust_domain, "root_jobs": self.root_jobs}
        who = identity(launch.user, launch.unix_user, **accepted, token_file=self.token_file)
        if who is not None:
            check_access(who, self.attempts, *([self.python, RANK] if spec.launcher.ranked else []))
        python = interpreter.resolve(None if spec.recipe is not None else spec.python, self.python)
        fetch = partial(self._fetch, folder)
        cwd = prepare.lay_out(folder, launch, fetch)
        manifest = prepare.carry_over(folder, launch, fetch, self.disk_floor())
        resuming.bring(folder.at(layout.RESTORE), cwd, spec)
        if spec.recipe is not None:
            _recipe_file(folder).write_text(spec.recipe.model_dump_json())
        folder.make_temporary()
        store.mend(folder)
        prepare.hand_over(folder, launch, who)
        tree.write(folder.path, manifest)
        return PreparedAttempt(launch=launch, who=who, python=python, cwd=cwd, threads=threads)

    def _launch_record(self, folder: AttemptFolder, prepared: PreparedAttempt) -> dict[str, Any]:
        launch, spec, met = prepared.launch, prepared.launch.spec, _rendezvous(prepared)
        if launch.restore is not None:
            spec = resuming.resumed(spec, folder.at(layout.RESTORE))
        else:
            spec = resuming.continued(spec, launch.carry)
        places = argv.AttemptPaths(
            logs=folder.at(layout.LOGS),
            marks=folder.at(layout.MARKS),
            cwd=prepared.cwd,
            recipe=_recipe_file(folder),
            rendezvous=met,
        )
        programs = argv.Programs(worker=self.python, job=prepared.python.path, rank=RANK, elastic=ELASTIC)
        inside = environment.EnvironmentInputs(
            own=self.own_environment,
            passed=self.passed,
            folder=folder,
            spec=spec,
            job=launch.job,
            interpreter=prepared.python,
            injob=self.injob,
            worker_bin=self.python.parent,
            devices=launch.devices,
            threads=prepared.threads,
            confined=bool(prepared.limits.get("confined")),
            restores=launch.restore is not None,
            identity=prepared.who,
            temporary=folder.temporary,
            tracker_runs=launch.tracker_runs,
            disk_floor=self.disk_floor(),
            rendezvous=met,
        )
        command = argv.main_process(spec, programs, places, _local_rank(spec, prepared.cwd))
        return launch_record(folder, prepared, command, environment.build(inside))

    def _fetch(self, folder: AttemptFolder, sha256: str, target: Path) -> None:
        _check_not_stopped(folder)
        self.control.fetch_blob(sha256, target)

    def _threads(self, launch: Launch, devices: int) -> int:
        """CPU threads of each process, from its devices' share of the node's cores."""
        return threads(launch.spec, int(self.cpus * max(1.0, _devices_of(launch)) / max(1, devices)))

    def finalize_lost(self, attempt_id: AttemptId, *, seconds: float = 60.0) -> bool:
        """End an attempt whose shim is dead: kill what is left of it and write a LOST result.

        False when there is nothing to finalize, or when processes outlive SIGKILL for `seconds`: try again later.
        """
        folder = AttemptFolder(self.attempts, attempt_id)
        try:
            descriptor = folder.try_lock()
        except FileNotFoundError:
            return False
        if descriptor is None:
            return False
        try:
            return folder.started() and not folder.has_result() and lost.finalize(folder, seconds)
        finally:
            os.close(descriptor)


def _local_rank(spec: JobSpec, cwd: Path) -> str | None:
    """The option by which a script is told its number on the node, under the launcher that passes one."""
    if spec.launcher is not How.LAUNCH or spec.command is None:
        return None
    return local_rank.option(argv.python_arguments(spec.command), cwd)


def _recipe_file(folder: AttemptFolder) -> Path:
    return folder.at(layout.JOB) / "recipe.json"


def _rendezvous(prepared: PreparedAttempt) -> rendezvous.NodeRendezvous | None:
    launch, go = prepared.launch, prepared.go
    nodes = launch.spec.resources.nodes
    if nodes == 1:
        return None
    return rendezvous.NodeRendezvous(
        nodes=nodes,
        node_rank=launch.node_rank,
        address=go.address,
        port=go.port,
        interface=rendezvous.interface_towards(go.address),
    )


def _check_not_stopped(folder: AttemptFolder) -> None:
    """Raise StoppedError once the attempt is to stop: no shim is there to obey yet."""
    if folder.stop_asked() is not None:
        raise StoppedError


def with_present(launch: Launch, present: Sequence[Device]) -> Launch:
    """The launch with its devices as they are now; raises DeviceGoneError for one that is no longer there."""
    found = {device.uuid: device for device in present}
    for device in launch.devices:
        if device.uuid not in found:
            raise DeviceGoneError(f"{device.name} ({device.uuid}) is no longer on this node: rerun the job")
    return launch.model_copy(update={"devices": [found[device.uuid] for device in launch.devices]})


def threads(spec: JobSpec, share: int) -> int:
    """CPU threads of each process: its share of the cores that the spec names, else of the job's share.

    A command under `launcher: python` or `none` is taken to start one process for each of its devices.
    """
    ranked = spec.recipe is not None or spec.launcher.ranked
    processes = spec.local_world_size if ranked else max(1, spec.resources.gpus)
    return max(1, (spec.resources.cpus or share) // processes)


def _devices_of(launch: Launch) -> float:
    """Devices of the attempt; of one that it shares, its fraction."""
    share = launch.spec.resources.gpu_share
    return sum(1.0 if share is None else min(1.0, share / max(1, device.memory)) for device in launch.devices)
