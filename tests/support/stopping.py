"""The ways in which a queue stops a running job, each followed by whatever makes it go on."""

from collections.abc import Callable

from tests.support import wait
from tests.support.user import User
from torchyard.api import Job
from torchyard.policy import Policy
from torchyard.states import JobState


def trains(user: User, job: Job) -> int:
    """Waits until the job has made a step; returns that."""

    def step() -> int:
        now = user.yard.client.job(job.id)
        assert now.state not in {JobState.FAILED, JobState.SUCCEEDED}, f"{now.error}\n{user.log(job)}"
        return (now.progress.step or 0) if now.progress else 0

    return wait.until(step, seconds=180, what=f"a step of {job.name}")


def cancelled(user: User, job: Job) -> Job:
    """Cancels it and reruns it."""
    trains(user, job)
    user.yard.client.cancel(job.id)
    return user.yard.client.rerun(user.ends(job, JobState.CANCELLED).id)


def cancelled_after_a_checkpoint(user: User, job: Job) -> Job:
    """The same, once it has a checkpoint of its own making."""
    user.checkpoint(job)
    return cancelled(user, job)


def preempted(user: User, job: Job) -> Job:
    """Has it checkpoint and make room for an urgent job, after which it goes on by itself."""
    user.yard.client.set_policy(Policy(min_run=0))
    trains(user, job)
    user.yard.client.checkpoint(job.id)
    user.checkpoint(job)
    gpus = job.spec["resources"]["gpus"]
    urgent = {"name": "urgent", "priority": "urgent", "launcher": "none", "command": ["true"]}
    user.succeeds(user.yard.client.submit({**urgent, "resources": {"gpus": gpus}}))
    return job


#: Stops a job that trains; returns the job that goes on.
Stop = Callable[[User, Job], Job]
