"""The passes through a loader in one epoch, and what betrays that a resumed epoch would not repeat them.

The place in the data is the list of the epoch's passes in the order in which they began. The pass that fed the last
step is the epoch's own. Those before it, such as a look at the first batch, are begun anew in a resumed epoch; those
after it are over. A resumed epoch tells its passes apart by their ordinal.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import Enum, auto
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


class PassState(Enum):
    """Progress of the loop in a pass."""

    #: It may take more batches.
    OPEN = auto()
    #: It has asked for a batch after the last.
    EXHAUSTED = auto()
    #: It has let go of the pass before that.
    LEFT = auto()


@dataclass(eq=False)
class LoaderPass:
    """One way through the loader: new, repeated from its beginning (`to_repeat`), or resumed in its midst (`taken`)."""

    state: PassState = PassState.OPEN
    #: Number of its epoch, and its own in that.
    ordinal: tuple[int, int] = (0, 0)
    #: Batches that the loop has taken of it, with those taken before the run was resumed.
    taken: int = 0
    #: Samples that were taken of this epoch while it was dealt to other ranks, or in other batches.
    consumed: int = 0
    #: Batches that it had taken before the run was stopped, in one that is repeated.
    to_repeat: int | None = None
    #: The loader's own count of passes, where it has one.
    iteration: int | None = None
    #: Where streams and generators were before the order was drawn.
    order_rng: dict[str, Any] | None = None
    #: Where the streams shall be once the order is drawn again, in one that is resumed; None once they are.
    resume_rng: dict[str, Any] | None = None
    #: Where the streams were when it was exhausted.
    end_rng: dict[str, Any] | None = None
    #: Steps that it has fed in this process.
    steps: int = 0
    #: Batches taken, and the threads that took them, since the last step.
    taken_since_step: int = 0
    threads: set[int] = field(default_factory=set)

    @property
    def open(self) -> bool:
        return self.state is PassState.OPEN

    @property
    def exhausted(self) -> bool:
        return self.state is PassState.EXHAUSTED

    def take(self) -> None:
        """Count a batch."""
        self.taken += 1
        self.taken_since_step += 1
        self.threads.add(threading.get_ident())

    def step_done(self) -> None:
        """Count what was taken so far as part of a step that is done."""
        self.taken_since_step = 0
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
        self._steps = 0
        #: What its first step took, and what all of them did but those with the loader's last batch.
        self._first = 0
        self._amounts: set[int] = set()

    def step(self, taken: int, *, at_end: bool) -> str | None:
        """Count a step that took so many batches; return what that betrays. `at_end`: with the loader's last batch."""
        self._steps += 1
        if self._steps == 1:
            self._first = taken
        elif taken == self._first:
            self.confirmed = True
        if self.first is None:
            self.first = taken
        elif taken == self.first:
            self.confirmed = True
        if not at_end:
            self._amounts.add(taken)
        return AHEAD if self._steps == 2 and taken < self._first and not at_end else None

    def idle(self) -> str | None:
        """Count a step after the last batch, which took none; return what that betrays."""
        alone = self._steps == 1 and self._first > 1
        return AHEAD if alone or len(self._amounts) > 1 else None


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
