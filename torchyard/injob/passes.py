"""The passes through a loader in one epoch, and what betrays that a resumed epoch would not repeat them.

The place in the data is the list of the epoch's passes in the order in which they began. The pass that fed the last
step is the epoch's own. Those before it, such as a look at the first batch, are begun anew in a resumed epoch; those
after it are over. A resumed epoch tells its passes apart by their ordinal.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torchyard.injob.reasons import CheckpointReason

#: Passes of an epoch that a checkpoint holds. A script with more takes each batch from a pass of its own.
MOST = 50

THREAD = CheckpointReason("other-thread")
SEVERAL = CheckpointReason("several-passes")
AHEAD = CheckpointReason("ahead")
IDLE = CheckpointReason("idle-steps")
MORE = CheckpointReason("more-before")
OTHER = CheckpointReason("other-pass")
FED = CheckpointReason("passes-fed")
BROKEN_OFF = CheckpointReason("broken-off")
MANY = CheckpointReason("many-passes")
UNBOUNDED = CheckpointReason("unbounded")
OTHER_LOADER = CheckpointReason("other-loader")


@dataclass(eq=False)
class LoaderPass:
    """One way through the loader."""

    #: Batches that the loop has taken of it, with those taken before the run was resumed.
    taken: int = 0
    #: Samples that were taken of this epoch while it was dealt to other ranks, or in other batches.
    consumed: int = 0
    #: Where the streams were before the order was drawn.
    drawn: dict[str, Any] | None = None
    #: Where they shall be once the order is drawn again: this pass goes on with one from a checkpoint.
    streams_then: dict[str, Any] | None = None
    #: Batches that it had taken before the run was stopped, in one that is begun anew.
    taken_before: int | None = None
    #: The loader's own count of passes, where it has one.
    iteration: int | None = None
    #: The loop has asked for a batch after the last.
    exhausted: bool = False
    #: The loop has let go of it before that.
    closed: bool = False
    #: Where the streams were when the loop asked for a batch after the last.
    random_at_end: dict[str, Any] | None = None
    #: Steps that it has fed in this process.
    steps: int = 0
    #: Batches taken, and the threads that took them, since the last step.
    since_step: int = 0
    threads: set[int] = field(default_factory=set)

    @property
    def live(self) -> bool:
        """Return whether the loop may take more of it."""
        return not self.closed and not self.exhausted

    def take(self) -> None:
        """Count a batch."""
        self.taken += 1
        self.since_step += 1
        self.threads.add(threading.get_ident())

    def step_done(self) -> None:
        """Count what was taken so far as part of a step that is done."""
        self.since_step = 0
        self.threads = set()


class BatchesPerStep:
    """Batches taken for each step: a loop that reads ahead takes more for its first step than for the next."""

    def __init__(self, first: int | None = None, *, confirmed: bool = False) -> None:
        #: What the run's first step took, and whether another one took as many.
        self.first = first
        self.confirmed = confirmed
        self.begin()

    def begin(self) -> None:
        """Begin to count anew: another pass feeds the steps from here on."""
        self._first: int | None = None
        self._steps = 0
        self._twice = False
        self._range: set[int] = set()

    def step(self, taken: int, *, at_end: bool) -> str | None:
        """Count a step that took so many batches; return what that betrays. `at_end`: with the loader's last batch."""
        before, self._steps = self._first, self._steps + 1
        if before is None:
            self._first = taken
        self._twice = self._twice or taken == before
        self.confirmed = self.confirmed or self._twice or taken == self.first
        self.first = taken if self.first is None else self.first
        if not at_end:
            self._range = {min(self._range | {taken}), max(self._range | {taken})}
        return AHEAD if self._steps == 2 and before is not None and taken < before and not at_end else None

    def idle(self) -> str | None:
        """Count a step after the last batch, which took none; return what that betrays."""
        alone = self._steps == 1 and self._first is not None and self._first > 1
        return AHEAD if alone or len(self._range) > 1 else None


class PassEnd(NamedTuple):
    """End of an epoch's own pass: batches taken, and whether that was the loader's end."""

    taken: int
    whole: bool


class PassEnds:
    """Ends of the epochs, to tell whether the resumed one ended where it should."""

    def __init__(self, usual: PassEnd | None = None) -> None:
        #: That of an epoch that was not interrupted.
        self.usual = usual
        self._resumed: PassEnd | None = None

    def verdict(self, end: PassEnd) -> str | None:
        """Return why this end of the resumed epoch is not right; None if it is."""
        expected = end.whole if self.usual is None else end == self.usual or (end.whole and self.usual.whole)
        return None if expected else BROKEN_OFF

    def note(self, end: PassEnd, *, resumed: bool) -> str | None:
        """Note the end of an epoch; return what that betrays of the resumed one before it."""
        if resumed:
            self._resumed = end
            return None
        before, self._resumed, self.usual = self._resumed, None, end
        return None if before is None else self.verdict(before)
