"""One attempt from the moment its shim has been forked until nothing of it is left to bring away.

    wait for the shim ──> forward ──> drain ──> report ──> bring the rest ──> settle ──> await its exit

The end goes in this order, for people and for the next job in the queue alike:

1. What is left of metrics, logs and new checkpoints, but for at most `DRAIN_S`: a job that shows as failed should
   already have its log, yet a flood of output must not keep its GPUs from the next job.
2. The result. The service releases the GPUs.
3. All the rest: the remaining streams, checkpoints not yet stored, outputs.
4. ``settled``: the service has everything, so the folder may go, once the shim has. Where nothing is left to bring,
   the result says so. What a fault in TorchYard keeps from the service for `streams.FAULTY_S` is given up and stays on
   the node, since the job's next attempt waits for this word.

`Follower.step` is a plain state machine, whose state is the method to call; `Follower.run` gives it a thread.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from torchyard import wire
from torchyard.injob import layout
from worker.attempts.folder import AttemptFolder
from worker.exceptions import RequestRefusedError
from worker.forward import results, upload_stream
from worker.forward.streams import AttemptStreams
from worker.forward.tools import FollowerTools, Watch
from worker.forward.upload_stream import UploadStream
from worker.forward.written import has_saved

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

logger = logging.getLogger(__name__)


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
        #: Error of the step that failed last.
        self._said = ""
        #: The result has settled it.
        self._settled = False
        self._saved: bool | None = None
        #: The next attempt wants the files of this one.
        self.awaited = False

    def _make_streams(self, started_us: int | None) -> None:
        """Make the streams, once the launch file says what that needs."""
        launch, attempt = self._launch(), self._folder.attempt_id
        self._streams = AttemptStreams(self._folder, self._tools, launch, self._owner(), started_us, fresh=self._fresh)
        self._first_rank, self._ranked = launch.get("first_rank", 0), bool(launch.get("torchrun"))
        self._devices: list[str] = launch.get("devices", [])
        self._result_stream = UploadStream(f"{attempt} result", self._send_result)
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
            except OSError as error:  # a disk that takes no writes, say: for as long as it lasts
                if str(error) != self._said:
                    self._said = str(error)
                    logger.warning("%s: tried again: %s", self._folder.attempt_id, error)
                pause = 1.0
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
            self._watch = self._tools.watch(shim, self._folder.result_pipe)
        if shim is not None or self._folder.has_result():
            self._make_streams(None if shim is None else shim.started_us)
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
        self._streams.forward(self._tools.now())
        return TICK_S

    def _has_heard_result(self) -> bool:
        """Return whether the shim has told its result, which a power cut may still take from the folder."""
        said = None if self._watch is None else self._watch.said
        if said is not None and self._result is None:
            with suppress(ValueError):
                self._result = wire.Result.model_validate_json(said)
        return self._result is not None

    def _begin_end(self) -> float:
        """Go on to what follows the end: nobody writes any more, but for the shim its result."""
        self._exiting, self._watch = self._watch, None
        self._learn()
        self._streams.end()
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
        pause = self._streams.run(self._streams.early, now)
        left = self._since + DRAIN_S - now
        return self._enter(self._report) if pause is None or left <= 0 else min(pause, left)

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
            dropped_bytes=self._streams.logs.dropped,
            dropped_records=self._streams.metrics.skipped + self._streams.trackers.skipped,
            tracker_runs=self._streams.trackers.runs,
        )
        if result.started_us is not None:
            complete = results.blame(complete, self._tools.xid(self._devices, result.started_us))
        seen = {"saved": self._has_saved(), "gpu_memory_peak": self._tools.gpu_memory(self._folder.attempt_id)}
        moment = results.moment(result, self._launch())
        last = {"start": self._streams.start.unreported(), "settled": self._streams.has_reported_all()}
        return complete.model_copy(update=moment | seen | last)

    def _has_saved(self) -> bool:
        """Told with the result: the next attempt may start at once."""
        if self._saved is None:
            self._saved = has_saved(self._folder.path, self._owner())
        return self._saved

    def _bring_rest(self) -> float | None:
        now = self._tools.now()
        self._streams.run(self._streams.rest, now)
        self._streams.give_up_faulty(self._since, now)
        pause = self._streams.pause(self._streams.rest, now)
        if pause is not None:
            return pause
        return 0.0 if self._streams.write_notes() else self._enter(self._settle)

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
