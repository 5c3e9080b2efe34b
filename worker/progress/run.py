"""Progress of a whole run, put together from the counters that it prints.

A loop whose counter begins again is one of several, such as the batches of an epoch: alone it says nothing of the
run's length. Together with the epochs, or with an outer bar, it does.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from worker.progress.counters import Counter, CounterKind, counters

#: A script that changes its mind more often than this about what it counts is not understood.
MAX_PHASES: Final = 8
#: Loops that are told apart; more labels are no progress bars.
MAX_LOOPS: Final = 64
_EPOCHS: Final = re.compile(r"--?(?:num[-_](?:train[-_])?|max[-_]|n[-_]|total[-_]|train[-_])?epochs?")


class RunProgress(NamedTuple):
    """Place of a run in its steps. `phase` is another one after each change of what is counted."""

    phase: int
    step: int
    total: int


@dataclass
class _Loop:
    label: str
    place: int
    total: int
    #: It is one of several: it has begun again, or is a part of an epoch.
    repeats: bool = False
    #: It went on behind its total, which so is none.
    passed: bool = False
    #: Numbers of the counters that were its first, and that changed it last.
    first: int = 0
    changed: int = 0


class ProgressParser:
    """Follows what one process prints. `epochs`: of the run, where its command line tells."""

    def __init__(self, epochs: int | None = None) -> None:
        self._epochs = epochs
        self._epoch: int | None = None
        self._first_epoch = 1
        #: Lines of epochs come when they have ended, not when they begin.
        self._after = False
        self._loops: dict[tuple[str, int], _Loop] = {}
        self._inner: tuple[str, int] | None = None
        self._seen = 0
        self._last = RunProgress(0, 0, 0)

    def feed(self, lines: Iterable[str]) -> None:
        """Take note of lines, in their order."""
        for line in lines:
            for counter in counters(line):
                self._seen += 1
                if counter.kind is CounterKind.EPOCH:
                    self._take_epoch(counter)
                else:
                    self._take_loop(counter)

    def progress(self) -> RunProgress | None:
        """Return where the run is; None while what it prints does not tell, or has turned out not to."""
        found = self._of_epochs() if self._epoch is not None and self._epochs else self._of_loops()
        if found is None or self._last.phase > MAX_PHASES:
            return None
        step, total = found
        again = total != self._last.total or step < self._last.step
        self._last = RunProgress(self._last.phase + again, step, total)
        return self._last

    def _take_epoch(self, counter: Counter) -> None:
        if counter.place > (counter.total or self._epochs or counter.place):
            # Past a total that was believed; another one may be no number of epochs at all.
            self._epochs = None if counter.total in {None, self._epochs} else self._epochs
            return
        if counter.total is not None:
            self._epochs = counter.total
        if counter.place == 0:
            self._first_epoch = 0
        if self._epoch is None and self._loops:
            inner = max(self._loops.values(), key=lambda loop: loop.changed)
            self._after = inner.place >= inner.total
        if counter.place != self._epoch:
            self._epoch, self._inner = counter.place, None

    def _take_loop(self, counter: Counter) -> None:
        total = counter.total or 0
        key = (counter.label, total)
        if key in self._loops and counter.place > total:
            self._loops[key].passed = True
        if not 0 < total >= counter.place or (key not in self._loops and len(self._loops) >= MAX_LOOPS):
            return
        if key not in self._loops:
            in_epoch = self._epoch is not None
            self._loops[key] = _Loop(counter.label, counter.place, total, repeats=in_epoch, first=self._seen)
        loop = self._loops[key]
        loop.repeats |= counter.place < loop.place
        loop.place, loop.changed = counter.place, self._seen
        # The first loop of an epoch is its training; what follows, such as an evaluation, is shorter.
        self._inner = self._inner or key

    def _of_epochs(self) -> tuple[int, int] | None:
        epochs = self._epochs or 0
        done = 0 if self._epoch is None else self._epoch - self._first_epoch + self._after
        inner = self._loops.get(self._inner) if self._inner else None
        if inner is None and self._loops:
            inner = max(self._loops.values(), key=lambda loop: loop.total)
            inner = _Loop(inner.label, 0, inner.total, passed=inner.passed)
        if inner is None or inner.passed:
            return min(done, epochs), epochs
        return min(done * inner.total + inner.place, epochs * inner.total), epochs * inner.total

    def _of_loops(self) -> tuple[int, int] | None:
        """Return where the outermost loop is that can be the run."""
        again = max((loop for loop in self._loops.values() if loop.repeats), key=_changed, default=None)
        ways = [loop for loop in self._loops.values() if not loop.repeats and not loop.passed]
        once = [loop for loop in ways if not again or _is_around(loop, again)]
        # Nested bars: the outer one was there first and stands still while the inner one moves.
        outer = next((loop for loop in once if loop.place < loop.total), max(once, key=_changed, default=None))
        return None if outer is None else (outer.place, outer.total)


def _is_around(outer: _Loop, inner: _Loop) -> bool:
    """Tell whether a loop goes on while another one within it begins again and again."""
    return outer.changed > inner.first


def _changed(loop: _Loop) -> int:
    return loop.changed


def epochs_of(argv: Sequence[str]) -> int | None:
    """Return the number of epochs that a command line asks for: ``--epochs 14``, ``--max_epochs=90``."""
    for word, after in pairwise([*argv, ""]):
        name, equals, value = word.partition("=")
        number = value if equals else after
        if _EPOCHS.fullmatch(name) and number.isdecimal() and int(number) > 0:
            return int(number)
    return None
