"""Starting an attempt on this node: exactly once, whatever is killed or repeated on the way."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from torchyard.errnos import NO_SPACE
from torchyard.ids import AttemptId, now_us
from torchyard.injob import layout
from torchyard.spec import JobSpec
from torchyard.spec import Launcher as How
from torchyard.wire import Device, Go, Launch, PreloadedModules, Prepared, RankExit, Result, ResultKind, StartMark
from worker import shim
from worker.attempts import files, tree
from worker.attempts.folder import AttemptFolder
from worker.attempts.starts import ColdReason, Heard, StartClock
from worker.exceptions import DeviceGoneError, StoppedError, UnavailableError, UnusableError
from worker.launching import argv, carry, environment, interpreter, local_rank, prepare, rendezvous, resuming, warm
from worker.launching.identity import UnixUser, check_access, identity
from worker.launching.inherited import inherited
from worker.launching.shims import ShimServer
from worker.limits.node import NodeLimits, end_groups
from worker.monitoring import processes
from worker.shim import verdict
from worker.shim.files import DISK_FULL, steady_us
from worker.trackers import store, translate

SHIM = Path(shim.__file__).parent / "__main__.py"
RANK = Path(shim.__file__).parent / "rank.py"
ELASTIC = Path(shim.__file__).parent / "elastic.py"
#: How often it is asked whether all nodes are prepared.
ASK_S = 0.5
#: How long a stop waits for the first poll of a rank on a node whose ranks have not polled, before SIGTERM.
PATIENCE_S = 10.0


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


@dataclass(frozen=True, kw_only=True)
class PreparedAttempt:
    """An attempt whose code and environment are ready."""

    who: UnixUser | None
    python: interpreter.Interpreter
    cwd: Path
    threads: int
    limits: dict[str, Any] = field(default_factory=dict)
    """What the shim needs to know of them, from `NodeLimits.create`."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values of the job's secrets: they go to the shim through a pipe, and into no file."""


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
            self._prepare_and_spawn(folder, descriptor, launch, claimed, clock)
        except OSError as error:
            if error.errno not in NO_SPACE or folder.started():
                raise
            folder.write_result(Result(kind=ResultKind.LOST, message=DISK_FULL, disk_full=True, ended_us=now_us()))

    def _prepare_and_spawn(
        self, folder: AttemptFolder, descriptor: int, launch: Launch, claimed: dict[str, Any], clock: StartClock
    ) -> None:
        try:
            ready = self._prepare(folder, launch)
        except StoppedError as error:
            folder.write_result(
                Result(kind=ResultKind.KILLED, stop=folder.stop_asked(), message=str(error), ended_us=now_us())
            )
            return
        except UnusableError as error:
            folder.write_result(Result(kind=ResultKind.UNUSABLE, message=str(error), ended_us=now_us()))
            return
        if ready is None:
            folder.remove()
            return
        launch, prepared_attempt, go = ready
        held = files.hold(folder.temporary)
        try:
            record = self._launch_record(folder, launch, prepared_attempt, _rendezvous(launch, go))
            translate.prepare(folder, record, prepared_attempt.who.uid if prepared_attempt.who else os.getuid())
            folder.write_launch(record | claimed)
            folder.mark_started()
            carry.release(folder, launch.carry)
            prepare.let_in(folder, prepared_attempt.who)
            kept = [descriptor] if held is None else [descriptor, held]
            kept += self.lock_descriptors([device.uuid for device in launch.devices])
            clock.mark(StartMark.PREPARED)
            cold_reason = self._spawn(folder, kept, prepared_attempt.secrets, record)
            with suppress(OSError):  # it runs by now, whether or not there is room to tell how it started
                clock.write(folder, cold_reason, None if cold_reason else self._preloaded(record))
        finally:
            if held is not None:
                os.close(held)

    def _prepare(self, folder: AttemptFolder, launch: Launch) -> tuple[Launch, PreparedAttempt, Go] | None:
        """Lay everything out and wait for the other nodes; None when the attempt is no longer wanted."""
        settled = self._await_settled(folder, launch)
        if settled is None:
            return None
        present = settled.devices if self.present is None else self.present()
        launch = with_present(settled, present)
        prepared_attempt = self._lay_out(folder, launch, self._threads(launch, len(present)))
        go = self._await_members(folder, launch)
        if go is None:
            return None
        limits = self.limits.create(folder.attempt_id, launch.spec.resources, launch.devices)
        names = launch.spec.secrets
        secrets = self.control.secrets(folder.attempt_id, folder.nonce()) if names else {}
        return launch, replace(prepared_attempt, limits=limits, secrets=secrets), go

    def _await_settled(self, folder: AttemptFolder, launch: Launch) -> Launch | None:
        """Wait until all that the attempt before has left is known; None when this one is no longer wanted."""
        while True:
            _check_not_stopped(folder)
            if launch.carry is None or launch.carry.settled:
                return launch
            time.sleep(ASK_S)
            newer = self.control.launch(folder.attempt_id)
            if newer is None:
                return None
            launch = newer

    def _await_members(self, folder: AttemptFolder, launch: Launch) -> Go | None:
        """Wait until all nodes are prepared; None when they will not be. Killed here, it is all done again."""
        resources = launch.spec.resources
        if resources.nodes == 1:
            return Go(go=True)
        with rendezvous.reserved_port() as port:
            where = Prepared(address=self.own_address(resources.network_interface), port=port)
            while True:
                answer = self._report_prepared(folder.attempt_id, where)
                if answer is None or answer.go:
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
        who = identity(launch.user, launch.unix_user, **accepted)
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
        return PreparedAttempt(who=who, python=python, cwd=cwd, threads=threads)

    def _launch_record(
        self,
        folder: AttemptFolder,
        launch: Launch,
        prepared_attempt: PreparedAttempt,
        met: rendezvous.NodeRendezvous | None,
    ) -> dict[str, Any]:
        spec = launch.spec
        if launch.restore is not None:
            spec = resuming.resumed(spec, folder.at(layout.RESTORE))
        else:
            spec = resuming.continued(spec, launch.carry)
        places = argv.AttemptPaths(
            logs=folder.at(layout.LOGS),
            marks=folder.at(layout.MARKS),
            cwd=prepared_attempt.cwd,
            recipe=_recipe_file(folder),
            rendezvous=met,
        )
        programs = argv.Programs(worker=self.python, job=prepared_attempt.python.path, rank=RANK, elastic=ELASTIC)
        inside = environment.EnvironmentInputs(
            own=self.own_environment,
            passed=self.passed,
            folder=folder,
            spec=spec,
            job=launch.job,
            interpreter=prepared_attempt.python,
            injob=self.injob,
            worker_bin=self.python.parent,
            devices=launch.devices,
            threads=prepared_attempt.threads,
            confined=bool(prepared_attempt.limits.get("confined")),
            restores=launch.restore is not None,
            identity=prepared_attempt.who,
            temporary=folder.temporary,
            tracker_runs=launch.tracker_runs,
            disk_floor=self.disk_floor(),
            rendezvous=met,
        )
        command = argv.main_process(spec, programs, places, _local_rank(spec, prepared_attempt.cwd))
        return launch_record(folder, launch, command, environment.build(inside), prepared_attempt)

    def _fetch(self, folder: AttemptFolder, sha256: str, target: Path) -> None:
        _check_not_stopped(folder)
        self.control.fetch_blob(sha256, target)

    def _threads(self, launch: Launch, devices: int) -> int:
        """CPU threads of each process, from its devices' share of the node's cores."""
        return threads(launch.spec, int(self.cpus * max(1.0, _devices_of(launch)) / max(1, devices)))

    def _spawn(
        self,
        folder: AttemptFolder,
        descriptors: list[int],
        secrets: Mapping[str, str],
        record: Mapping[str, Any],
    ) -> ColdReason | None:
        """Fork the shim, from a fork server if there is one, and wait until it has let the job go; it reads the secrets
        from its input. Return why it was not forked from a server.
        """
        launch = folder.at(layout.LAUNCH)
        told = json.dumps(dict(secrets)).encode() if secrets else None
        with (folder.at(layout.LOGS) / layout.LAUNCHER_LOG).open("ab") as log, self._reaper(record) as forked:
            reaper, cold_reason = forked
            if self.fork_servers is not None and record["uid"] is None:
                cold_reason = self.fork_servers.start(record, launch, log.fileno(), descriptors, told)
                if cold_reason is None:
                    return None
            if self.shims is not None and self.shims.launch(launch, log.fileno(), descriptors, told, reaper):
                return _why_not_forked(folder) if reaper else cold_reason
            subprocess.Popen(
                [str(self.python), "-I", "-S", str(SHIM), str(launch), *map(str, descriptors)],
                stdin=subprocess.DEVNULL if told is None else subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                env=inherited(self.own_environment, self.passed),
                pass_fds=descriptors,
                start_new_session=True,
            ).communicate(told)
        return cold_reason

    def _preloaded(self, record: Mapping[str, Any]) -> PreloadedModules | None:
        return None if self.fork_servers is None else self.fork_servers.preloaded(record)

    @contextmanager
    def _reaper(self, record: Mapping[str, Any]) -> Iterator[tuple[socket.socket | None, ColdReason | None]]:
        """A reaper that forks the job of another account, and why the job is executed if it does not."""
        if self.fork_servers is None or record["uid"] is None:
            yield None, warm.OFF
            return
        reaper = warm.SILENT if self.shims is None else self.fork_servers.fork_reaper(record)
        if isinstance(reaper, ColdReason):
            yield None, reaper
            return
        with reaper:
            yield reaper, warm.REFUSED

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
            return folder.started() and not folder.has_result() and _finalize_locked(folder, seconds)
        finally:
            os.close(descriptor)


def _why_not_forked(folder: AttemptFolder) -> ColdReason | None:
    """Return why a job was not forked by the reaper that its shim was given; None when it was."""
    shim = folder.read_shim()
    return warm.REFUSED if shim is not None and not shim.forked else None


def _local_rank(spec: JobSpec, cwd: Path) -> str | None:
    """The option by which a script is told its number on the node, under the launcher that passes one."""
    if spec.launcher is not How.LAUNCH or spec.command is None:
        return None
    return local_rank.option(argv.python_arguments(spec.command), cwd)


def _recipe_file(folder: AttemptFolder) -> Path:
    return folder.at(layout.JOB) / "recipe.json"


def _rendezvous(launch: Launch, go: Go) -> rendezvous.NodeRendezvous | None:
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


def _finalize_locked(folder: AttemptFolder, seconds: float) -> bool:
    limits = (folder.read_launch() or {}).get("limits", {})
    if not end_groups(limits, seconds) or processes.sweep(folder.attempt_id, seconds):
        return False
    shim = folder.read_shim()
    message = "the process that guarded this attempt was killed (out of memory, or by hand)"
    if shim is None:
        message = "the node was interrupted while it started this attempt; no instruction of the job has run"
    started_us = shim.started_us if shim else None
    ranks = _noted_exits(folder)
    folder.write_result(
        Result(kind=ResultKind.LOST, message=message, ranks=ranks, started_us=started_us, ended_us=now_us())
    )
    return True


def _noted_exits(folder: AttemptFolder) -> list[RankExit]:
    """Return the exits that the ranks' wrappers noted before the shim was gone."""
    launch = folder.read_launch() or {}
    ranks = verdict.ranks_of(launch)
    noted = verdict.marked_exits(str(folder.at(layout.MARKS)), ranks, {os.getuid(), launch.get("uid")})
    return [RankExit(**each._asdict()) for each in noted]


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


def _joining_ranks(spec: JobSpec) -> int:
    """Ranks that should join a process group on this node; 0 where that cannot be seen, or is the trainer's affair."""
    alone = spec.resources.nodes == 1 and spec.command is not None
    return spec.local_world_size if alone and spec.launcher.ranked else 0


def launch_record(
    folder: AttemptFolder,
    launch: Launch,
    command: list[str],
    env: dict[str, str],
    prepared_attempt: PreparedAttempt,
) -> dict[str, Any]:
    """``launch.json``: what the shim is to do, with absolute paths, since it knows nothing of ours."""
    who, torchrun = prepared_attempt.who, launch.spec.launcher.ranked
    logs = folder.at(layout.LOGS)
    ranks = prepare.ranks(launch)
    return {
        "argv": command,
        "python": str(prepared_attempt.python.path),
        "env": env,
        # torchrun looks for modules in its own working folder; the wrapper takes the ranks to theirs.
        "cwd": str(logs if torchrun else prepared_attempt.cwd),
        "output": str(logs / (layout.LAUNCHER_LOG if torchrun else layout.rank_log(ranks.start))),
        "torchrun": torchrun,
        "rank_program": str(RANK),
        "meets": _joining_ranks(launch.spec),
        "first_rank": ranks.start,
        "local_world_size": len(ranks),
        # Ranks of other nodes may have polled when none of this one has yet.
        "patience_s": PATIENCE_S if launch.spec.resources.nodes > 1 else 0.0,
        "uid": who.uid if who else None,
        "gid": who.gid if who else None,
        "groups": list(who.groups) if who else None,
        "time_limit_s": launch.spec.time_limit,
        "grace_s": launch.spec.grace,
        "devices": [device.uuid for device in launch.devices],
        "gpu_share": launch.spec.resources.gpu_share,
        "limits": prepared_attempt.limits,
        "isolated": launch.spec.isolated,
        "warm_start": launch.spec.warm_start,
        "log_limit": launch.spec.log_limit,
        "user": launch.user,
        "node_rank": launch.node_rank,
        "secrets": sorted(prepared_attempt.secrets),
        "trackers": list(launch.spec.read_trackers),
        "live": launch.spec.live,
        "paths": {
            name: str(folder.at(path))
            for name, path in {
                "shim": layout.SHIM,
                "command": layout.COMMAND,
                "control": layout.CONTROL,
                "result": layout.RESULT,
                "marks": layout.MARKS,
                "outcome": layout.OUTCOME,
                "unjoined": layout.UNJOINED,
            }.items()
        },
    }
