"""One attempt from the moment its shim has been forked until nothing of it is left to bring away.

    wait for the shim ──> forward ──> drain ──> report ──> bring the rest ──> settle ──> await its exit

The end goes in this order, for people and for the next job in the queue alike:

1. What is left of metrics, logs and new checkpoints, but for at most `DRAIN_S`: a job that shows as failed should
   already have its log, yet a flood of output must not keep its GPUs from the next job.
2. The result. The service releases the GPUs.
3. All the rest: the remaining streams, checkpoints not yet stored, outputs.
4. ``settled``: the service has everything, so the folder may go, once the shim has. Where nothing is left to bring,
   the result says so. What a fault in TorchYard keeps from the service for `FAULTY_S` is given up and stays on the
   node, since the job's next attempt waits for this word.

`Follower.step` is a plain state machine; `Follower.run` gives it a thread.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from torchyard import wire
from torchyard.ids import AttemptId
from torchyard.injob import layout
from worker.attempts import unsent
from worker.attempts.folder import AttemptFolder, ShimRecord
from worker.attempts.kept import KeptFiles
from worker.attempts.starts import StartReader
from worker.background import Spawn
from worker.exceptions import RequestRefusedError
from worker.forward import results, upload_stream
from worker.forward.blobs import BlobSender
from worker.forward.checkpoints import CheckpointForwarder, CheckpointSink
from worker.forward.environments import EnvironmentForwarder, EnvironmentReader, EnvironmentSink, interpreter_of
from worker.forward.logs import LogForwarder, LogSink
from worker.forward.metrics import MetricForwarder, MetricSink
from worker.forward.notes import NoteForwarder, NoteSink
from worker.forward.outputs import OutputForwarder, OutputSink
from worker.forward.trackers import TrackerForwarder
from worker.forward.upload_stream import UploadStream
from worker.forward.written import OutputLimits, has_saved
from worker.monitoring.disk import DiskWatch
from worker.monitoring.user_disk import UserDisk

#: How long the result may wait for the streams.
DRAIN_S: Final = 2.0
#: How often streams are looked at.
TICK_S: Final = 0.2
#: How often the shim's first word is looked for, where nobody waited for it: its start takes about 30 ms.
START_S: Final = 0.005
#: A job that ends within this time is reported once, by its result; every request costs the service a transaction.
BRIEF_S: Final = 0.01
#: A shim that has not said a word for so long is looked at: it may have died.
SILENT_S: Final = 1.0
#: How often background work is looked at, once the attempt has ended.
BACKGROUND_S: Final = 0.02
#: How long a stream that meets a fault in TorchYard is tried again, once the result is told.
FAULTY_S: Final = 300.0
DEFAULT_LOG_LIMIT: Final = 2**30

logger = logging.getLogger(__name__)


class FollowerService(LogSink, MetricSink, CheckpointSink, NoteSink, OutputSink, EnvironmentSink, Protocol):
    """Requests that a follower makes to the control plane."""

    def running(self, attempt: AttemptId, started_us: int, start: wire.NodeStart | None = None) -> None: ...
    def start(self, attempt: AttemptId, start: wire.NodeStart) -> None: ...
    def result(self, attempt: AttemptId, result: wire.Result) -> wire.Settled | None: ...
    def settled(self, attempt: AttemptId) -> bool: ...


class Watch(Protocol):
    """Sees one process end."""

    @property
    def said(self) -> bytes | None:
        """The result that it has told before it lies in the folder; None before."""

    def wait(self, seconds: float) -> bool:
        """Return whether it has ended, after waiting for that, or for its result, at most so long."""

    def close(self) -> None: ...


def no_xid(_uuids: Collection[str], _since_us: int) -> None:
    """Return nothing, for nodes without GPUs."""


def no_gpu_memory(_attempt: AttemptId) -> None:
    """Return nothing, for nodes without GPUs."""


@dataclass(frozen=True, kw_only=True)
class FollowerTools:
    """Dependencies that all followers of a node share."""

    service: FollowerService
    blobs: BlobSender
    #: Watches a shim, and the pipe by which it tells its result; one that is gone has ended.
    watch: Callable[[ShimRecord, Path], Watch]
    #: Sweeps what a dead shim left and writes its result; for an attempt without one.
    finalize_lost: Callable[[AttemptId], object]
    #: Called when an attempt enters another phase.
    changed: Callable[[], None]
    #: Runs a function in the background.
    spawn: Spawn
    now: Callable[[], float] = time.monotonic
    #: The Xid of a fault that one of these GPUs (UUIDs) has had since a moment (µs).
    xid: Callable[[Collection[str], int], int | None] = no_xid
    #: The most memory that an attempt has held of a GPU.
    gpu_memory: Callable[[AttemptId], int | None] = no_gpu_memory
    #: How much of what a job writes goes to the store.
    limits: Callable[[], OutputLimits] = OutputLimits
    #: Bytes of disk that an attempt may take; None: no limit.
    disk_limit: Callable[[], int | None] = lambda: None
    #: What the attempts of each user take together.
    user_disk: UserDisk = field(default_factory=UserDisk)
    #: What is installed for the interpreters of jobs.
    environments: EnvironmentReader = field(default_factory=EnvironmentReader)
    #: Learns from an attempt that has ended, by its ``launch.json`` and its owner's uid.
    learn: Callable[[Mapping[str, Any], AttemptFolder, int], None] = lambda _launch, _folder, _owner: None


class Follower:
    """Follows one attempt. `fresh`: nothing of it has been sent yet, so its marks are 0."""

    def __init__(self, folder: AttemptFolder, tools: FollowerTools, *, fresh: bool) -> None:
        self._folder = folder
        self._tools = tools
        self._fresh = fresh
        self._stop = threading.Event()
        self._watch: Watch | None = None
        #: Of a shim that has told its result, and brings it to the disk.
        self._exiting: Watch | None = None
        self._result: wire.Result | None = None
        self._phase: Callable[[], float | None] = self._await_shim
        self._since = tools.now()
        self._looked = self._since
        self._ended = False
        #: The result has settled it.
        self._settled = False
        self._saved: bool | None = None
        self._given_up: set[UploadStream] = set()
        #: The next attempt wants the files of this one.
        self.awaited = False

    def _make_streams(self) -> None:
        """Make what forwards the attempt's files, once its launch file says what that needs."""
        tools, folder, attempt = self._tools, self._folder.path, self._folder.attempt_id
        launch = self._launch()
        owner = self._owner()
        self._logs = LogForwarder(
            tools.service,
            attempt,
            folder,
            limit=launch.get("log_limit", DEFAULT_LOG_LIMIT),
            fresh=self._fresh,
            node_rank=launch.get("node_rank", 0),
        )
        self._metrics = MetricForwarder(
            tools.service, attempt, folder, node_rank=launch.get("node_rank", 0), owner=owner, fresh=self._fresh
        )
        self._trackers = TrackerForwarder(tools.service, self._folder, launch, owner=owner, fresh=self._fresh)
        self._first_rank, self._ranked = launch.get("first_rank", 0), bool(launch.get("torchrun"))
        self._devices: list[str] = launch.get("devices", [])
        self._outputs = OutputForwarder(
            tools.service,
            tools.blobs,
            attempt,
            folder,
            owner=owner,
            kept=KeptFiles(self._folder.attempts.parent),
            limits=tools.limits(),
            spawn=tools.spawn,
        )
        checkpoints = CheckpointForwarder(tools.service, tools.blobs, attempt, folder, owner=owner, spawn=tools.spawn)
        self._start_reader = StartReader(self._folder, owner=owner, first=not launch.get("node_rank", 0))
        self._reported_start: wire.NodeStart | None = None
        self._running_stream = UploadStream(f"{attempt} running", self._report_running)
        self._start_stream = UploadStream(f"{attempt} start", self._report_start)
        self._log_stream = UploadStream(f"{attempt} logs", self._logs.pump)
        self._checkpoint_stream = UploadStream(f"{attempt} checkpoints", checkpoints.pump)
        self._streams = [
            UploadStream(f"{attempt} metrics", lambda: self._metrics.pump(ended=self._ended)),
            self._log_stream,
            self._checkpoint_stream,
            UploadStream(f"{attempt} trackers", lambda: self._trackers.pump(ended=self._ended)),
            UploadStream(f"{attempt} notes", NoteForwarder(tools.service, attempt, folder, owner=owner).pump),
        ]
        self._growing_stream = UploadStream(f"{attempt} written files", self._outputs.growing.pump)
        self._installed = EnvironmentForwarder(
            tools.service, attempt, interpreter_of(launch), tools.environments, spawn=tools.spawn, now=tools.now
        )
        self._environment_stream = UploadStream(
            f"{attempt} environment", lambda: self._installed.pump(ended=self._ended)
        )
        #: They hand their work to the background, and look at times whether it is done.
        self._background_streams = (self._checkpoint_stream, self._environment_stream)
        disk = DiskWatch(self._folder, tools.disk_limit, tools.spawn, tools.user_disk, launch.get("user", ""))
        self._disk_stream = UploadStream(f"{attempt} disk", disk.pump)
        self._result_stream = UploadStream(f"{attempt} result", self._send_result)
        outputs = UploadStream(f"{attempt} outputs", self._outputs.pump)
        self._rest_streams = [*self._streams, outputs, self._environment_stream]
        self._settled_stream = UploadStream(f"{attempt} settled", self._send_settled)

    def _launch(self) -> dict[str, Any]:
        try:
            return self._folder.read_launch() or {}
        except (OSError, ValueError):
            return {}

    def _owner(self) -> int:
        try:
            return self._folder.at(layout.JOB).lstat().st_uid
        except OSError:
            return self._folder.path.stat().st_uid

    def run(self) -> bool:
        """Follow the attempt to its end; False when `stop` was called or the folder was taken away before."""
        while not self._stop.is_set() and self._folder.path.exists():
            try:
                pause = self.step()
            except Exception:
                logger.exception("%s: a step failed and is tried again", self._folder.attempt_id)
                pause = 1.0
            if pause is None:
                self._close_watches()
                return True
            self._wait(pause)
        self._close_watches()
        return False

    def stop(self) -> None:
        """Make `run` return soon; the attempt goes on."""
        self._stop.set()

    def step(self) -> float | None:
        """Do what is due; return the seconds until the next step, or None once everything is settled."""
        return self._phase()

    def _wait(self, seconds: float) -> None:
        if self._watch is not None:
            self._watch.wait(seconds)
        elif seconds > 0:
            self._stop.wait(seconds)

    def _enter(self, phase: Callable[[], float | None]) -> float:
        self._phase = phase
        self._since = self._tools.now()
        self._tools.changed()
        return 0.0

    def _await_shim(self) -> float | None:
        shim = self._folder.read_shim()
        if shim is not None and self._watch is None:  # a step that failed is done again
            self._shim = shim
            self._watch = self._tools.watch(shim, self._folder.result_pipe)
        if shim is not None or self._folder.has_result():
            self._make_streams()
        if self._folder.has_result():
            return self._begin_end()
        if self._watch is not None:
            self._watch.wait(BRIEF_S)
            return self._enter(self._forward)
        now = self._tools.now()
        if now - self._looked >= SILENT_S:
            self._looked = now
            if not self._folder.locked() and not self._folder.has_result() and self._folder.read_shim() is None:
                self._tools.finalize_lost(self._folder.attempt_id)
        return START_S if now - self._since < SILENT_S else TICK_S

    def _forward(self) -> float | None:
        gone = self._watch is None or self._watch.wait(0)
        if self._has_heard_result() or self._folder.has_result():
            return self._begin_end()
        if gone:
            self._close_watches()
            self._tools.finalize_lost(self._folder.attempt_id)
            return self._begin_end() if self._folder.has_result() else SILENT_S
        now = self._tools.now()
        beside = (self._start_stream, self._growing_stream, self._disk_stream, self._environment_stream)
        upload_stream.run_all((self._running_stream, *self._streams, *beside), now)
        return TICK_S

    def _has_heard_result(self) -> bool:
        """Return whether the shim has told its result, which a power cut may still take from the folder."""
        said = None if self._watch is None else self._watch.said
        if said is not None and self._result is None:
            with suppress(ValueError):
                self._result = wire.Result.model_validate_json(said)
        return self._result is not None

    def _report_running(self) -> bool:
        if not self._running_stream.drained:
            start = self._start_reader.read()
            self._tools.service.running(self._folder.attempt_id, self._shim.started_us, start)
            self._reported_start = start
        return False

    def _report_start(self) -> bool:
        """Tell of the ranks' start what has come since; what comes last goes with the result."""
        start = self._start_reader.read()
        if self._running_stream.drained and start is not None and start != self._reported_start:
            self._tools.service.start(self._folder.attempt_id, start)
            self._reported_start = start
        return False

    def _new_start(self) -> wire.NodeStart | None:
        start = self._start_reader.read()
        return None if start == self._reported_start else start

    def _begin_end(self) -> float:
        """Go on to what follows the end: nobody writes any more, but for the shim its result."""
        self._exiting, self._watch = self._watch, None
        self._learn()
        self._ended = True
        for stream in (*self._streams, self._environment_stream):
            stream.drained = False
        return self._enter(self._drain)

    def _learn(self) -> None:
        """Learn from the attempt; a fault in that must not keep the result."""
        launch = self._launch()
        if not launch:
            return
        try:
            self._tools.learn(launch, self._folder, self._owner())
        except Exception:
            logger.exception("%s: nothing is learnt of it: a fault in TorchYard", self._folder.attempt_id)

    def _close_watches(self) -> None:
        for watch in (self._watch, self._exiting):
            if watch is not None:
                watch.close()
        self._watch = self._exiting = None

    def _drain(self) -> float | None:
        now = self._tools.now()
        upload_stream.run_all([stream for stream in self._streams if not stream.drained], now)
        if upload_stream.drained(self._streams) or now - self._since >= DRAIN_S:
            return self._enter(self._report)
        return min(self._pause(self._streams, now), self._since + DRAIN_S - now)

    def _report(self) -> float | None:
        now = self._tools.now()
        self._result_stream.run(now)
        if self._result_stream.drained:
            return self._enter(self._await_exit if self._settled else self._bring_rest)
        return upload_stream.pause([self._result_stream], now)

    def _send_result(self) -> bool:
        result = self._result or self._folder.read_result()
        if result is None:
            raise OSError("the result has vanished")
        # What describes the end must not keep the end itself, and with it the GPUs.
        told = result if self._result_stream.faulty_since is not None else self._described(result)
        try:
            answer = self._tools.service.result(self._folder.attempt_id, told)
            if answer is not None:
                self._settled, self.awaited = True, answer.awaited
        except RequestRefusedError as error:
            if error.status not in {409, 410}:
                raise
            logger.warning("%s: %s; the rest is brought away", self._folder.attempt_id, error)
        return False

    def _described(self, result: wire.Result) -> wire.Result:
        """Return the result with all that the node knows of the attempt."""
        complete = results.complete(
            result,
            self._folder.path,
            first_rank=self._first_rank,
            ranked=self._ranked,
            dropped_bytes=self._logs.dropped,
            dropped_records=self._metrics.skipped + self._trackers.skipped,
            tracker_runs=self._trackers.runs,
        )
        if result.started_us is not None:
            complete = results.blame(complete, self._tools.xid(self._devices, result.started_us))
        seen = {"saved": self._has_saved(), "gpu_memory_peak": self._tools.gpu_memory(self._folder.attempt_id)}
        moment = results.moment(result, self._launch())
        last = {"start": self._new_start(), "settled": self._has_reported_all()}
        return complete.model_copy(update=moment | seen | last)

    def _has_reported_all(self) -> bool:
        """Return whether nothing will be left but the result, as of a job that ends at once and writes no file."""
        return upload_stream.drained(self._streams) and not self._installed.begun and self._outputs.has_nothing()

    def _has_saved(self) -> bool:
        """Told with the result: the next attempt may start at once."""
        if self._saved is None:
            self._saved = has_saved(self._folder.path, self._owner())
        return self._saved

    def _bring_rest(self) -> float | None:
        now = self._tools.now()
        upload_stream.run_all([one for one in self._rest_streams if not one.drained], now)
        self._give_up_faulty(now)
        if not upload_stream.drained(self._rest_streams):
            return self._pause(self._rest_streams, now)
        if self._write_notes():
            self._log_stream.drained = False
            return 0.0
        return self._enter(self._settle)

    def _give_up_faulty(self, now: float) -> None:
        """Let go of streams that a fault in TorchYard has kept from their end for too long: the folder stays here."""
        for stream in self._rest_streams:
            since = None if stream.drained else stream.faulty_since
            if since is None or now - max(since, self._since) < FAULTY_S:
                continue
            if stream not in self._given_up:
                unsent.mark(self._folder)
                self._given_up.add(stream)
                logger.error("%s: given up: a fault in TorchYard: %s", stream.name, stream.said)
                self._outputs.notes.append(
                    f"not all of its {stream.name.removeprefix(f'{self._folder.attempt_id} ')} came to the service, "
                    f"for a fault in TorchYard ({stream.said}): its folder stays on this node, in "
                    f"{unsent.place(self._folder)}"
                )
            stream.drained = True

    def _write_notes(self) -> bool:
        """Tell the job's owner in the launcher's log what was left out."""
        notes, self._outputs.notes = self._outputs.notes, []
        if not notes:
            return False
        try:
            with self._folder.at(layout.LOGS).joinpath(layout.LAUNCHER_LOG).open("a") as log:
                log.writelines(f"torchyard: {note}\n" for note in notes)
        except OSError as error:
            logger.warning("%s: %s (%s)", self._folder.attempt_id, "; ".join(notes), error)
        return True

    def _settle(self) -> float | None:
        now = self._tools.now()
        self._settled_stream.run(now)
        if self._settled_stream.drained:
            return self._enter(self._await_exit)
        return upload_stream.pause([self._settled_stream], now)

    def _await_exit(self) -> float | None:
        """Wait for the shim, whose lock keeps the folder."""
        return None if self._exiting is None or self._exiting.wait(TICK_S) else 0.0

    def _send_settled(self) -> bool:
        self.awaited = self._tools.service.settled(self._folder.attempt_id)
        return False

    def _pause(self, streams: list[UploadStream], now: float) -> float:
        """Metrics and logs go on at once; what is done in the background is waited for."""
        busy = [one for one in streams if not one.drained]
        if busy and all(one in self._background_streams for one in busy):
            return max(BACKGROUND_S, upload_stream.pause(busy, now))
        return upload_stream.pause(busy, now)
