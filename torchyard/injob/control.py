"""`should_checkpoint`: what the queue asks of the job, agreed between its ranks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from torchyard.injob import collective, files, layout, notes, place
from torchyard.injob.cadence import Cadence

#: Aim for the time between two looks at the control file.
POLL_SECONDS = 0.3
#: The interval grows at most so much at once: the first steps of a training are no measure of the others.
MAX_GROWTH = 4
MAX_CALLS = 4096

NOTHING, CHECKPOINT, STOP = 0, 1, 2


class ControlRequest(NamedTuple):
    """Requests of ``control.json``."""

    action: str
    serial: int
    #: Of a stop: seconds until what is left is killed, when it was asked for.
    grace_s: float = float("inf")


class ControlFile:
    """Reads ``control.json``, parsing it only when it has changed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._request: ControlRequest | None = None

    def read(self) -> ControlRequest | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return self._request
        if (status.st_ino, status.st_mtime_ns) != self._seen:
            content = files.read_json(self._path)
            if isinstance(content, dict):
                grace_s = float(content.get("grace_s", "inf"))
                self._request = ControlRequest(str(content.get("action")), int(content.get("serial", 0)), grace_s)
                self._seen = (status.st_ino, status.st_mtime_ns)
        return self._request


def decide(request: ControlRequest | None, served: int | None, due: bool) -> int:
    """STOP, CHECKPOINT or NOTHING; `served` is the serial of the last request that a checkpoint answered."""
    if request is not None and request.action == "stop":
        return STOP
    asked = request is not None and request.action == "checkpoint" and request.serial != served
    return CHECKPOINT if asked or due else NOTHING


def calls_until_poll(calls: int, seconds: float) -> int:
    """Number of calls to let pass, when the last `calls` of them took `seconds`."""
    wanted = int(calls * POLL_SECONDS / max(seconds, 1e-6))
    return max(1, min(wanted, calls * MAX_GROWTH, MAX_CALLS))


class Agreement:
    """One rank's part in agreeing on checkpoints and stops. Every rank makes the same calls.

    Rank 0 looks and decides. With several ranks its decision is broadcast at every k-th call only; it chooses k from
    the pace of the calls and sends it along.
    """

    def __init__(self, attempt: place.CurrentAttempt | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Off the queue nobody asks for anything.
        self._control = ControlFile(os.devnull if attempt is None else attempt.path(layout.CONTROL))
        self._attempt = attempt
        self._every = None if attempt is None else attempt.checkpoint_every
        #: Chooses when checkpoints are due, where nobody has said when.
        self.cadence: Cadence | None = None
        #: Called at each look, by all ranks at the same call.
        self.watcher: Callable[[], None] | None = None
        self._served: int | None = None
        self._decision = NOTHING
        self._saved_at = self._polled_at = clock()
        self._interval = self._left = 1
        #: Of the process group, once it stands: asking torch for it costs more than all the rest of a call.
        self._ranks: int | None = None
        self._look_at = 0.0
        self._marked = False

    @property
    def decision(self) -> int:
        """Decision that the ranks have agreed on: STOP, CHECKPOINT or NOTHING."""
        return self._decision

    @property
    def periodic(self) -> bool:
        """Return whether checkpoints are due from time to time."""
        return self._every is not None or self.cadence is not None

    @property
    def stopping(self) -> bool:
        """Return whether the ranks have agreed to stop."""
        return self._decision == STOP

    def should_checkpoint(self) -> bool:
        if self._decision == STOP:
            return True
        if not self._marked and self._attempt is not None:
            _mark(self._attempt)
        self._marked = True
        if self._ranks is None:
            # Before the group stood, ranks may have called at different paces: now all look together.
            self._ranks, self._interval, self._left = collective.group_size(), 1, 1
        if self._ranks is None or self._ranks == 1:
            return self._look_alone()
        self._left -= 1
        if self._left <= 0:
            self._look_together()
        return bool(self._decision)

    def _look_alone(self) -> bool:
        now = self._clock()
        if now >= self._look_at:
            self._look_at = now + POLL_SECONDS
            self._ranks = None
            self._decision = self._look(now)
            self._tell_watcher()
        return bool(self._decision)

    def _look_together(self) -> None:
        if collective.group_size() != self._ranks:
            self._ranks = None  # the script has destroyed it
            return
        now = self._clock()
        decision = self._look(now) if place.rank() == 0 else NOTHING
        interval = calls_until_poll(self._interval, now - self._polled_at)
        self._decision, self._interval = collective.broadcast([decision, interval])
        self._left = self._interval
        self._tell_watcher()
        self._polled_at = self._clock()

    def _tell_watcher(self) -> None:
        if self.watcher is not None:
            self.watcher()

    def _look(self, now: float) -> int:
        return max(self._decision, decide(self._control.read(), self._served, self._due(now)))

    def _due(self, now: float) -> bool:
        if self._every is not None:
            return now - self._saved_at >= self._every
        if self._attempt is None or self.cadence is None or not self.cadence.due(now - self._saved_at):
            return False
        lacking = self.cadence.lacks_room(self._attempt)
        if lacking is None:
            return True
        self._saved_at = now
        place.say("no checkpoint now: " + lacking)
        notes.write(notes.CHECKPOINT_FAILED, 0, [lacking])
        return False

    def checkpoint_ended(self, *, committed: bool) -> None:
        """Note that a checkpoint was taken, or failed: the next is due later, but a stop still wants its checkpoint."""
        if self._decision != STOP or committed:
            self._decision = NOTHING
        request = self._control.read()
        self._served = request.serial if request is not None else None
        self._saved_at = self._clock()


def _mark(attempt: place.CurrentAttempt) -> None:
    """Tell the shim that this job polls, so that a stop needs no signal."""
    path = os.path.join(attempt.path(layout.MARKS), layout.polled_mark(place.rank()))
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
    except OSError as error:
        place.say("cannot write %s: %s" % (path, error))


_agreement: Agreement | None = None


def checkpoint_ended(*, committed: bool) -> None:
    """Tell this rank's agreement, if it has polled, how a checkpoint ended."""
    if _agreement is not None:
        _agreement.checkpoint_ended(committed=committed)


def decision() -> int:
    """Last answer of `should_checkpoint`: STOP, CHECKPOINT or NOTHING."""
    return NOTHING if _agreement is None else _agreement.decision


def stopping() -> bool:
    """Return whether the last `should_checkpoint` was True because the job is being stopped."""
    return decision() == STOP


def choose() -> None:
    """Have checkpoints be due as often as costs little, on the queue and unless the job's spec says when."""
    global _agreement  # noqa: PLW0603 (one per process)
    attempt = place.current()
    if attempt is None or attempt.checkpoint_every is not None or not attempt.chooses:
        return
    _agreement = _agreement or Agreement(attempt)
    _agreement.cadence = _agreement.cadence or Cadence()


def periodic() -> bool:
    """Return whether checkpoints are due from time to time, and so at the end."""
    return _agreement is not None and _agreement.periodic


def measured(stall_s: float, write_s: float, size: int) -> None:
    """A checkpoint was taken: what it cost, for the time of the next."""
    if _agreement is not None and _agreement.cadence is not None:
        _agreement.cadence.measured(stall_s, write_s, size)


def watch(watcher: Callable[[], None] | None) -> None:
    """Have `should_checkpoint` call this at each of its looks, also off the queue, until None is given."""
    global _agreement  # noqa: PLW0603 (one per process)
    if _agreement is None and watcher is not None:
        _agreement = Agreement(place.current())
    if _agreement is not None:
        _agreement.watcher = watcher


def should_checkpoint() -> bool:
    """Return whether to take a checkpoint now: one is due, was asked for, or the job is about to be stopped.

    Every rank calls it at the same places (each step, also in evaluation), after `torch.distributed` is initialised
    if there are several; all get the same answer. A call costs about a microsecond; the request is seen within about
    half a second or the length of a step. Answer True with `torchyard.checkpoint`; after a stop that leaves with exit
    code 0 once the checkpoint is safe. Off the queue it is always False.
    """
    global _agreement  # noqa: PLW0603 (one per process)
    if _agreement is None:
        attempt = place.current()
        if attempt is None:
            return False
        _agreement = Agreement(attempt)
    return _agreement.should_checkpoint()
