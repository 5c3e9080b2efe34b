"""Preemption handshake: when victims are stopped, and when they keep their devices. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from service.db.records.attempts import PendingPreemption
from torchyard.ids import AttemptId, JobId, parse_job_id
from torchyard.states import StopReason


class NoUse(StrEnum):
    """Why a preemptor has no use for what others would give up for it."""

    GONE = "gone"
    #: It would start elsewhere, or not at all.
    MOVED = "moved"


_NO_USE = {NoUse.GONE: "no longer waits", NoUse.MOVED: "would not start there any more"}


@dataclass(frozen=True, kw_only=True)
class PreemptionVictim:
    """A running job that is to be preempted."""

    job: JobId
    attempt: AttemptId
    pending: PendingPreemption
    runs: bool
    stop: StopReason | None = None
    """Why it is being stopped, if it is."""
    saved_step: int | None = None
    """Of its newest verified checkpoint."""

    @property
    def group(self) -> str:
        """Key that victims that are stopped together have in common."""
        return next(iter(job_of(self.pending.preemptor)), self.attempt)

    @property
    def leaves(self) -> bool:
        """Tell whether it is being stopped, but for another reason."""
        return self.stop not in {None, StopReason.PREEMPT}

    @property
    def ready(self) -> bool:
        """Tell whether it can be stopped without loss."""
        return self.runs and (
            self.pending.serial is None or (self.saved_step is not None and self.saved_step > self.pending.after)
        )

    @property
    def where(self) -> str:
        """Say what it goes on from, in words."""
        if self.pending.serial is None:
            return "it may start over and has no checkpoint"
        return f"its checkpoint of step {self.saved_step} is verified"


@dataclass(frozen=True, kw_only=True)
class HandshakeVerdict:
    """Next step for the victims of one preemptor."""

    stop: tuple[PreemptionVictim, ...] = ()
    keep: tuple[PreemptionVictim, ...] = ()
    """Those that are not preempted any more."""
    late: frozenset[JobId] = frozenset()
    """Jobs whose checkpoint did not come in time."""
    why: NoUse | None = None
    """What keeps the preemptor from starting in their places, if something does."""

    def told_to(self, each: PreemptionVictim) -> str:
        """Say what a job hears that is not preempted any more."""
        kept = "is preempted for nobody" if each.leaves else "keeps its devices"
        return f"{kept}: {self._why(each)}"

    def _why(self, each: PreemptionVictim) -> str:
        words = each.pending.words
        if self.why:
            return f"{words}, {_NO_USE[self.why]}"
        if each.job not in self.late:
            return f"another job cannot be preempted for {words}"
        allowed = f"no checkpoint was verified within {each.pending.allowed_s} s"
        return f"{allowed}: {words}, does not get them, nor does anybody soon"

    def data_for(self, each: PreemptionVictim) -> dict[str, Any]:
        """Return what a job's words are made of (`told_to`)."""
        late = each.job in self.late
        allowed_s = each.pending.allowed_s if late else None
        return {**each.pending.told, "leaves": each.leaves, "why": self.why, "allowed_s": allowed_s}

    def told(self, numbers: Mapping[JobId, int], spared_s: int) -> str:
        """Say what the preemptor hears of the jobs that are not preempted any more, whose numbers are given."""
        kept, late = (named(numbers[each.job] for each in some) for some in (self.keep, self._late()))
        if self.why:
            verb = "is" if len(self.keep) == 1 else "are"
            return f"{kept} {verb} no longer to be preempted for it: it {_NO_USE[self.why]}"
        keep = f"{kept} {'keeps its' if len(self.keep) == 1 else 'keep their'} devices"
        within = f"brought no verified checkpoint within {self._late()[0].pending.allowed_s} s"
        again = f"{late} {'is' if len(self.late) == 1 else 'are'} not asked again for {spared_s} s"
        return f"{keep}, for {late} {within}: this job waits on, and {again}"

    def data(self, numbers: Mapping[JobId, int], spared_s: int) -> dict[str, Any]:
        """Return what the preemptor's words are made of (`told`)."""
        kept, late = ([numbers[each.job] for each in some] for some in (self.keep, self._late()))
        allowed_s = next((each.pending.allowed_s for each in self._late()), None)
        return {"numbers": kept, "late": late, "why": self.why, "allowed_s": allowed_s, "spared_s": spared_s}

    def _late(self) -> tuple[PreemptionVictim, ...]:
        return tuple(each for each in self.keep if each.job in self.late)


def named(numbers: Iterable[int]) -> str:
    """Name jobs by their numbers."""
    return " and ".join(f"job {number}" for number in numbers)


def judge(group: Sequence[PreemptionVictim], now: int, *, why: NoUse | None = None) -> HandshakeVerdict:
    """Decide the next step for the victims of one preemptor; `why` says what keeps it from starting in their places."""
    left = tuple(each for each in group if each.stop is None)
    kept = tuple(each for each in group if each.stop is None or each.leaves)
    if why:
        return HandshakeVerdict(keep=kept, why=why)
    late = frozenset(each.job for each in left if not each.ready and each.pending.is_over(now))
    if late:
        return HandshakeVerdict(keep=kept, late=late)
    return HandshakeVerdict(stop=left) if all(each.ready for each in left) else HandshakeVerdict()


def job_of(preemptor: str) -> tuple[JobId, ...]:
    """Return the preemptor, if it is a job."""
    job_id = parse_job_id(preemptor)
    return () if job_id is None else (job_id,)
