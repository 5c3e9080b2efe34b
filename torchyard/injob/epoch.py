"""The epoch that a training is in: its passes, and the steps that they feed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from torchyard.injob import passes
from torchyard.injob.passes import BatchesPerStep, LoaderPass, PassEnds


class Epoch:
    """Passes in the order in which they began; in a resumed epoch the first of them repeat what they were."""

    def __init__(self, at_end: Callable[[LoaderPass], bool]) -> None:
        self._at_end = at_end
        self._passes: list[LoaderPass] = []
        #: What the passes of a resumed epoch were, up to its own.
        self._replay: list[LoaderPass] = []
        #: Fed the last step.
        self.own: LoaderPass | None = None
        #: Goes on with one from a checkpoint.
        self._resumed: LoaderPass | None = None
        self._bounded = False
        self._idle = 0
        self._after_end = 0
        self.pace = BatchesPerStep()
        self.ends = PassEnds()
        self._unconfirmed = False
        self._continued = False
        #: Why a resumed run is not, or would not be, exactly the one that was stopped; in the order of finding.
        self.reasons: list[str] = []

    def add_reason(self, reason: str | None) -> None:
        """Note a reason once."""
        if reason is not None and reason not in self.reasons:
            self.reasons.append(reason)

    @property
    def now(self) -> LoaderPass:
        """The epoch's own pass; before its first step what is to be resumed, or what the loop is in."""
        if self.own is not None:
            return self.own
        if len(self._passes) < len(self._replay):
            return self._replay[-1]
        return next((each for each in reversed(self._passes) if not each.closed), None) or LoaderPass()

    @property
    def at_last(self) -> bool:
        """Return whether the loop has taken the last batch and not yet asked for another."""
        now = self.now
        return any(now is each for each in self._passes) and not now.exhausted and self._at_end(now)

    @property
    def trailing(self) -> bool:
        """Return whether steps were reported after the loop, which a run that resumes here would report again."""
        return self._after_end > 0 and self._idle < 2 and not self.reasons

    def resume(self, replay: list[LoaderPass]) -> None:
        """The next epoch is one that was interrupted."""
        self._replay, self._continued = replay, True
        self._unconfirmed = bool(replay) and not self.pace.confirmed and self.pace.first is not None

    def begin(self, *, resumed: bool) -> None:
        """An epoch begins, or goes on."""
        # Again, if the loader was iterated between: the epoch itself is what is resumed.
        self._clear([*self._replay] if resumed else [])
        self._bounded = True

    def end(self) -> None:
        """The epoch is over."""
        for reason in self.pending():
            self.add_reason(reason)
        if self.own is not None:
            end = passes.PassEnd(self.own.taken, self._at_end(self.own))
            self.add_reason(self.ends.note(end, resumed=self.own is self._resumed))
        self._clear([])
        self._bounded = False

    def _clear(self, replay: list[LoaderPass]) -> None:
        self._passes, self._replay, self.own, self._resumed = [], replay, None, None
        self._idle = self._after_end = 0

    def pending(self) -> list[str]:
        """Return the reasons that can be told only when the loop over a resumed epoch is over."""
        own = self._resumed
        if own is None or own.live:
            return []
        found = self.ends.verdict(passes.PassEnd(own.taken, self._at_end(own)))
        unlike = self._unconfirmed and not self.pace.confirmed
        return ([] if found is None else [found]) + ([passes.AHEAD] if unlike else [])

    def start(self) -> LoaderPass:
        """A pass begins."""
        if not self._bounded and self.now.exhausted:
            self.end()  # of an epoch that the script does not tell of
        place = len(self._passes)
        if place >= len(self._replay):
            begun = LoaderPass()
        elif place == len(self._replay) - 1:
            begun = self._resumed = replace(self._replay[place], threads=set())
        else:
            begun = replace(self._replay[place], taken=0, taken_before=self._replay[place].taken, threads=set())
        if place == passes.MOST:
            self.add_reason(passes.MANY)
            del self._passes[0]
        self._passes.append(begun)
        return begun

    def take(self, taken: LoaderPass) -> None:
        """The loop takes a batch."""
        taken.take()
        if taken.taken_before is not None and taken.taken > taken.taken_before:
            self.add_reason(passes.MORE)

    def step(self) -> None:
        """A step of the optimizer is done with what was taken since the one before."""
        fed = [each for each in self._passes if each.since_step]
        if fed:
            self._step_with(fed)
        else:
            self._step_without_batches()
        for each in fed:
            each.step_done()
        self._after_end = self._after_end + 1 if self.own is not None and self.own.exhausted else 0

    def _step_with(self, fed: list[LoaderPass]) -> None:
        live = [each for each in fed if not each.closed]
        own = (live or fed)[-1]
        if any(each.threads - {threading.get_ident()} for each in fed):
            self.add_reason(passes.THREAD)
        if len(live) > 1:
            self.add_reason(passes.SEVERAL)
        if self.own is None and self._replay and own is not self._resumed:
            self.add_reason(passes.OTHER)
        if self._continued and not self._bounded:
            self.add_reason(passes.UNBOUNDED)
        if own is not self.own:
            self._change_own(own)
        own.steps += 1
        self._idle = 0
        self.add_reason(self.pace.step(own.since_step, at_end=self._at_end(own)))

    def _change_own(self, own: LoaderPass) -> None:
        """Take another pass for the epoch's own: it feeds the steps from here on."""
        self.pace.begin()
        if self.own is not None and self.own.live:
            self.add_reason(passes.SEVERAL)
        elif self.own is not None and not self._bounded:
            # An epoch that the script does not tell of.
            later = self.after()
            self.end()
            self._passes = later
        self.own = own

    def _step_without_batches(self) -> None:
        self._idle += 1
        if self._idle > 1 or (self.own is not None and self.own.live):
            self.add_reason(passes.IDLE)
        elif self.own is not None and self.own.exhausted:
            self.add_reason(self.pace.idle())

    def before(self) -> list[LoaderPass]:
        """The passes before the epoch's own."""
        now = self.now
        known = self._replay if now in self._replay else self._passes
        return known[: known.index(now)] if now in known else []

    def after(self) -> list[LoaderPass]:
        """The passes after the epoch's own."""
        now = self.now
        return self._passes[self._passes.index(now) + 1 :] if now in self._passes else []

    def flaws(self) -> list[str]:
        """Return the reasons why a run that resumes from here would not be exactly this one."""
        return [passes.FED] if any(each.steps for each in self.before()) else []
