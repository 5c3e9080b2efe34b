"""The streams of one attempt: all that is brought from its folder to the service, but for its result.

`early` is what the job's owner should have when the job shows as ended: metrics, logs, checkpoints, trackers and notes.
`rest` is all that has to be in the service before its node may forget the folder. While the job runs, the early ones
run, and beside them what tells how it started, how its files grow, and how much of the disk it takes.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from torchyard import wire
from torchyard.injob import layout
from worker.attempts import unsent
from worker.attempts.folder import AttemptFolder
from worker.attempts.kept import KeptFiles
from worker.attempts.starts import StartReader
from worker.forward import upload_stream
from worker.forward.checkpoints import CheckpointForwarder
from worker.forward.environments import EnvironmentForwarder, interpreter_of
from worker.forward.logs import LogForwarder
from worker.forward.metrics import MetricForwarder
from worker.forward.notes import NoteForwarder
from worker.forward.outputs import OutputForwarder
from worker.forward.tools import FollowerTools
from worker.forward.trackers import TrackerForwarder
from worker.forward.upload_stream import UploadStream
from worker.monitoring.disk import DiskWatch

#: How often background work is looked at, once the attempt has ended.
BACKGROUND_S: Final = 0.02
DEFAULT_LOG_LIMIT: Final = 2**30
#: How long a stream that meets a fault in TorchYard is tried again, once the result is told.
FAULTY_S: Final = 300.0

logger = logging.getLogger(__name__)


class AttemptStreams:
    """The streams of the attempt with this launch, `started_us` as its shim tells. `fresh`: nothing was sent yet."""

    def __init__(
        self,
        folder: AttemptFolder,
        tools: FollowerTools,
        launch: Mapping[str, Any],
        owner: int,
        started_us: int | None,
        *,
        fresh: bool,
    ) -> None:
        self._folder, path, attempt, node_rank = folder, folder.path, folder.attempt_id, launch.get("node_rank", 0)
        service, spawn = tools.service, tools.spawn
        limit = launch.get("log_limit", DEFAULT_LOG_LIMIT)
        self.logs = LogForwarder(service, attempt, path, limit=limit, fresh=fresh, node_rank=node_rank)
        self.metrics = MetricForwarder(service, attempt, path, node_rank=node_rank, owner=owner, fresh=fresh)
        self.trackers = TrackerForwarder(service, folder, launch, owner=owner, fresh=fresh)
        self._outputs = OutputForwarder(
            service,
            tools.blobs,
            attempt,
            path,
            owner=owner,
            kept=KeptFiles(folder.attempts.parent),
            limits=tools.limits(),
            spawn=spawn,
        )
        self._environment = EnvironmentForwarder(
            service, attempt, interpreter_of(launch), tools.environments, spawn=spawn, now=tools.now
        )
        checkpoints = CheckpointForwarder(service, tools.blobs, attempt, path, owner=owner, spawn=spawn)
        notes = NoteForwarder(service, attempt, path, owner=owner)
        disk = DiskWatch(folder, tools.disk_limit, spawn, tools.user_disk, launch.get("user", ""))
        self.start = StartReports(folder, tools, started_us, StartReader(folder, owner=owner, first=not node_rank))
        #: Nobody writes any more.
        self._ended = False
        self._log_stream = UploadStream(f"{attempt} logs", self.logs.pump)
        checkpoint_stream = UploadStream(f"{attempt} checkpoints", checkpoints.pump)
        self.early = [
            UploadStream(f"{attempt} metrics", lambda: self.metrics.pump(ended=self._ended)),
            self._log_stream,
            checkpoint_stream,
            UploadStream(f"{attempt} trackers", lambda: self.trackers.pump(ended=self._ended)),
            UploadStream(f"{attempt} notes", notes.pump),
        ]
        self._environment_stream = UploadStream(
            f"{attempt} environment", lambda: self._environment.pump(ended=self._ended)
        )
        self.rest = [*self.early, UploadStream(f"{attempt} outputs", self._outputs.pump), self._environment_stream]
        self._beside = (
            self.start.later,
            UploadStream(f"{attempt} written files", self._outputs.growing.pump),
            UploadStream(f"{attempt} disk", disk.pump),
            self._environment_stream,
        )
        #: They hand their work to the background, and look at times whether it is done.
        self._background = (checkpoint_stream, self._environment_stream)
        self._given_up: set[UploadStream] = set()

    def forward(self, now: float) -> None:
        """Do what is due while the job runs."""
        upload_stream.run_all((self.start.running, *self.early, *self._beside), now)

    def end(self) -> None:
        """Look once more at all that was drained: nobody writes any more."""
        self._ended = True
        for stream in (*self.early, self._environment_stream):
            stream.drained = False

    def run(self, streams: Iterable[UploadStream], now: float) -> float | None:
        """Do what is due of these; return the seconds until the next of it, or None once they are drained."""
        upload_stream.run_all([stream for stream in streams if not stream.drained], now)
        return self.pause(streams, now)

    def pause(self, streams: Iterable[UploadStream], now: float) -> float | None:
        """Metrics and logs go on at once; what is done in the background is waited for."""
        busy = [one for one in streams if not one.drained]
        if not busy:
            return None
        least = BACKGROUND_S if all(one in self._background for one in busy) else 0.0
        return max(least, upload_stream.pause(busy, now))

    def give_up_faulty(self, since: float, now: float) -> None:
        """Let go of streams that a fault in TorchYard has kept from their end for too long: the folder stays here."""
        for stream in self.rest:
            faulty = None if stream.drained else stream.faulty_since
            if faulty is None or now - max(faulty, since) < FAULTY_S:
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

    def write_notes(self) -> bool:
        """Tell the job's owner in the launcher's log what was left out; return whether there was anything."""
        notes, self._outputs.notes = self._outputs.notes, []
        if not notes:
            return False
        try:
            with self._folder.at(layout.LOGS).joinpath(layout.LAUNCHER_LOG).open("a") as log:
                log.writelines(f"torchyard: {note}\n" for note in notes)
        except OSError as error:
            logger.warning("%s: %s (%s)", self._folder.attempt_id, "; ".join(notes), error)
        self._log_stream.drained = False
        return True

    def has_reported_all(self) -> bool:
        """Return whether nothing will be left but the result, as of a job that ends at once and writes no file."""
        return upload_stream.drained(self.early) and not self._environment.begun and self._outputs.has_nothing()


class StartReports:
    """Reports of the job's start: that it runs, and what comes later of how it started."""

    def __init__(
        self, folder: AttemptFolder, tools: FollowerTools, started_us: int | None, reader: StartReader
    ) -> None:
        self._service, self._attempt = tools.service, folder.attempt_id
        self._started_us, self._reader = started_us, reader
        self._reported: wire.NodeStart | None = None
        self.running = UploadStream(f"{folder.attempt_id} running", self._report_running)
        self.later = UploadStream(f"{folder.attempt_id} start", self._report_later)

    def unreported(self) -> wire.NodeStart | None:
        """Return what has come since the last report: it goes with the result."""
        start = self._reader.read()
        return None if start == self._reported else start

    def _report_running(self) -> bool:
        if not self.running.drained and self._started_us is not None:
            start = self._reader.read()
            self._service.running(self._attempt, self._started_us, start)
            self._reported = start
        return False

    def _report_later(self) -> bool:
        start = self.unreported()
        if self.running.drained and start is not None:
            self._service.start(self._attempt, start)
            self._reported = start
        return False
