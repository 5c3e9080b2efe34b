"""Trials of jobs that cannot be stopped: each runs for a time slice first, and is then placed by its known length.

A job that cannot be stopped, but may be started over (`restartable`), is on trial from its start until a time slice
after its first step, or after `START_UP_US` if it has made none by then. By the end its steps have told how long it
will take. Then it goes on to its end; or it is **put back**, and starts from the beginning when its turn comes:

- if it is preempted for a job that is clearly ahead and really starts in its place, as any job is (`preemption`);
- if its devices are held for a blocked job that is clearly ahead or of a higher class, and it would not be gone before
  that one can start: where no job of its length may start, none goes on.

So untried jobs may be tried on held devices: nothing is lost there by a trial. What it costs is the time slice on the
devices of a job that is put back, at most `Policy.restarts` times.
"""

from service.scheduler.model.jobs import Running, Waiting
from torchyard.spec.policy import Order, Policy

_SECOND = 1_000_000
#: A job that has made no step by then is on trial all the same, from its start on.
START_UP_US = 300 * _SECOND
#: Time after a trial in which it is decided what becomes of the job, where decisions are made every few seconds.
VERDICT_US = 15 * _SECOND


def begun(started_us: int, first_step_us: int | None, policy: Policy) -> tuple[int, int]:
    """Return when the trial of a job that started then begins, and until when it may be put back, in microseconds."""
    bound_us = started_us + START_UP_US
    begun_us = bound_us if first_step_us is None else min(first_step_us, bound_us)
    return begun_us, begun_us + (policy.time_slice or 0) * _SECOND + VERDICT_US


def tries(policy: Policy) -> bool:
    """Return whether the policy tries jobs that cannot be stopped."""
    return policy.order is Order.FAIR and policy.time_slice is not None and policy.restarts > 0


def on_trial(job: Running, now_us: int) -> bool:
    """Return whether the job may still be put back."""
    return now_us <= job.trial_ends_us


def leaves(job: Waiting, policy: Policy) -> bool:
    """Return whether a waiting job is to be tried, so that it leaves again soon if it is in somebody's way."""
    known = job.remaining is not None and job.remaining.source.own
    untried = not known and job.ran_us < (policy.time_slice or 0) * _SECOND
    return job.restartable and untried and tries(policy)


def gone_us(job: Running, now_us: int) -> float:
    """Return when a job that is put back leaves: at once if its length is known, else at the end of its trial."""
    known = job.remaining is not None and job.remaining.source.own
    return now_us if known else max(job.trial_ends_us, now_us)
