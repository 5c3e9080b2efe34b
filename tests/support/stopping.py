"""How the queue stops a running job that makes room for another, and goes on by itself.

A job cannot tell why it is stopped: `tests/e2e/test_jobs.py` cancels one, and reruns it.
"""

from tests.support import wait
from tests.support.user import User
from torchyard.api import Job
from torchyard.spec.policy import Policy
from torchyard.states import AttemptState, JobState


def trains(user: User, job: Job) -> int:
    """Waits until the job has made a step; returns that."""

    def step() -> int:
        now = user.yard.client.job(job.id)
        assert now.state not in {JobState.FAILED, JobState.SUCCEEDED}, f"{now.error}\n{user.log(job)}"
        return (now.progress.step or 0) if now.progress else 0

    return wait.until(step, seconds=180, what=f"a step of {job.name}")


def preempted(user: User, job: Job) -> None:
    """Has it checkpoint and make room for an urgent job, after which it goes on by itself."""
    trains(user, job)
    user.yard.client.checkpoint(job.id)
    user.checkpoint(job)
    make_room(user)


def make_room(user: User) -> None:
    """Runs an urgent job in all slots, this one's too, which then goes on at full speed."""
    user.yard.client.set_policy(Policy(min_run=0))
    urgent = {"name": "urgent", "priority": "urgent", "launcher": "none", "command": ["true"]}
    user.succeeds(user.yard.client.submit({**urgent, "resources": {"gpus": 2}}))
    user.at_full_speed()


def preempted_after(user: User, job: Job, words: str) -> Job:
    """Has a restartable job make room once it has logged the words; returns it when it has ended well."""
    wait.until(lambda: words in user.log(job), seconds=180, what=f"{words!r} in the log of {job.name}")
    make_room(user)
    ended = user.succeeds(job)
    states = [each.state for each in user.yard.client.attempts(job.id)]
    assert states == [AttemptState.PREEMPTED, AttemptState.SUCCEEDED]
    return ended
