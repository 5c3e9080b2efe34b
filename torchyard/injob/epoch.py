"""The epoch that a training is in: its passes through the loader, and the steps that they feed (see `passes`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from torchyard.injob import passes
from torchyard.injob.passes import BatchesPerStep, LoaderPass, PassEnds, PassState


class Epoch:
    """Passes in the order in which they began. A script need not tell when its epochs begin and end."""

    def __init__(self, at_end: Callable[[LoaderPass], bool]) -> None:
        self._at_end = at_end
        #: Which it is, from 0.
        self.number = 0
        self._passes: list[LoaderPass] = []
        #: What the passes of a resumed epoch were in its checkpoint, up to its own, which comes last.
        self._replayed: list[LoaderPass] = []
        #: The pass that fed the last step.
        self.own: LoaderPass | None = None
        #: The pass that goes on with the last of those of the checkpoint.
        self._resumed: LoaderPass | None = None
        #: The script has told that the epoch began.
        self._delimited = False
        #: The run goes on with an epoch of an earlier one.
        self._continues = False
        #: Steps in a row without a batch, and those of them after the end of the own pass.
        self._steps_without_batch = 0
        self._steps_after_end = 0
        self.pace = BatchesPerStep()
        #: When the run was stopped, only its first step's pace was known.
        self._pace_unconfirmed = False
        self.ends = PassEnds()
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
        if len(self._passes) < len(self._replayed):
            return self._replayed[-1]
        return next((each for each in reversed(self._passes) if each.state is not PassState.LEFT), None) or LoaderPass()

    @property
    def at_last(self) -> bool:
        """Return whether the loop has taken the last batch and not yet asked for another."""
        now = self.now
        return any(now is each for each in self._passes) and not now.exhausted and self._at_end(now)

    @property
    def trailing(self) -> bool:
        """Return whether steps were reported after the loop, which a run that resumes here would report again."""
        return self._steps_after_end > 0 and self._steps_without_batch < 2 and not self.reasons

    def resume(self, replay: list[LoaderPass]) -> None:
        """The next epoch is one that was interrupted."""
        self._replayed, self._continues = replay, True
        self._pace_unconfirmed = bool(replay) and not self.pace.confirmed and self.pace.first is not None

    def begin(self, number: int, *, resumed: bool) -> None:
        """An epoch begins, or goes on."""
        self.number = number
        # Again, if the loader was iterated between: the epoch itself is what is resumed.
        self._clear([*self._replayed] if resumed else [])
        self._delimited = True

    def end(self) -> None:
        """The epoch is over."""
        for reason in self.pending():
            self.add_reason(reason)
        if self.own is not None:
            end = passes.PassEnd(self.own.taken, self._at_end(self.own))
            self.add_reason(self.ends.note(end, resumed=self.own is self._resumed))
        self._clear([])
        self._delimited = False
        self.number += 1

    def _clear(self, replay: list[LoaderPass]) -> None:
        self._passes, self._replayed, self.own, self._resumed = [], replay, None, None
        self._steps_without_batch = self._steps_after_end = 0

    def pending(self) -> list[str]:
        """Return the reasons that can be told only when the loop over a resumed epoch is over."""
        own = self._resumed
        if own is None or own.open:
            return []
        found = self.ends.verdict(passes.PassEnd(own.taken, self._at_end(own)))
        unlike = self._pace_unconfirmed and not self.pace.confirmed
        return ([] if found is None else [found]) + ([passes.AHEAD] if unlike else [])

    def start(self) -> LoaderPass:
        """A pass begins."""
        if not self._delimited and self.now.exhausted:
            self.end()  # of an epoch that the script does not tell of
        place = len(self._passes)
        if place >= len(self._replayed):
            begun = LoaderPass()
        elif place == len(self._replayed) - 1:
            begun = self._resumed = replace(self._replayed[place], threads=set())
        else:
            begun = replace(self._replayed[place], taken=0, to_repeat=self._replayed[place].taken, threads=set())
        begun.ordinal = (self.number, place)
        if place == passes.MOST:
            self.add_reason(passes.MANY)
            del self._passes[0]
        self._passes.append(begun)
        return begun

    def take(self, taken: LoaderPass) -> None:
        """The loop takes a batch."""
        taken.take()
        if taken.to_repeat is not None and taken.taken > taken.to_repeat:
            self.add_reason(passes.MORE)

    def step(self) -> None:
        """A step of the optimizer is done with what was taken since the one before."""
        fed = [each for each in self._passes if each.taken_since_step]
        if fed:
            self._step_with(fed)
        else:
            self._step_without_batches()
        for each in fed:
            each.step_done()
        self._steps_after_end = self._steps_after_end + 1 if self.own is not None and self.own.exhausted else 0

    def _step_with(self, fed: list[LoaderPass]) -> None:
        live = [each for each in fed if each.state is not PassState.LEFT]
        own = (live or fed)[-1]
        if any(each.threads - {threading.get_ident()} for each in fed):
            self.add_reason(passes.THREAD)
        if len(live) > 1:
            self.add_reason(passes.SEVERAL)
        if self.own is None and self._replayed and own is not self._resumed:
            self.add_reason(passes.OTHER)
        if self._continues and not self._delimited:
            self.add_reason(passes.UNBOUNDED)
        if own is not self.own:
            self._change_own(own)
        own.steps += 1
        self._steps_without_batch = 0
        self.add_reason(self.pace.step(own.taken_since_step, at_end=self._at_end(own)))

    def _change_own(self, own: LoaderPass) -> None:
        """Take another pass for the epoch's own: it feeds the steps from here on."""
        self.pace.begin()
        if self.own is not None and self.own.open:
            self.add_reason(passes.SEVERAL)
        elif self.own is not None and not self._delimited:
            # An epoch that the script does not tell of.
            later = self.after()
            self.end()
            self._passes = later
        self.own = own

    def _step_without_batches(self) -> None:
        self._steps_without_batch += 1
        if self._steps_without_batch > 1 or (self.own is not None and self.own.open):
            self.add_reason(passes.IDLE)
        elif self.own is not None and self.own.exhausted:
            self.add_reason(self.pace.idle())

    def before(self) -> list[LoaderPass]:
        """The passes before the epoch's own."""
        now = self.now
        known = self._replayed if now in self._replayed else self._passes
        return known[: known.index(now)] if now in known else []

    def after(self) -> list[LoaderPass]:
        """The passes after the epoch's own."""
        now = self.now
        return self._passes[self._passes.index(now) + 1 :] if now in self._passes else []

    def flaws(self) -> list[str]:
        """Return the reasons why a run that resumes from here would not be exactly this one."""
        return [passes.FED] if any(each.steps for each in self.before()) else []
