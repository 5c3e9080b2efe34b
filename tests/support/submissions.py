"""Submissions without HTTP: what a person posts, through the same function as the route."""

from typing import Any

from sqlalchemy import select

from service import ingest
from service.attempts import memory
from service.context import Context
from service.db.models import Job
from service.identity.callers import Caller
from service.jobs import submit as job_submission
from service.jobs.submission import Submission
from service.queue import overview
from tests.support import plane
from torchyard import api
from torchyard.spec import JobSpec

#: The user that `box.add_people` makes.
ADA = Caller(user_id="user-ada", name="ada", admin=True, scopes=frozenset({"admin"}), node=None, token_id="token")


def order(key: str | None = None, **fields: Any) -> Submission:
    """An order of `ada`; without work of its own it is a command that does nothing."""
    work = {} if fields.keys() & {"recipe", "command"} else {"command": ["true"]}
    launcher = {} if "recipe" in fields else {"launcher": "none"}
    spec = JobSpec.model_validate({"resources": {"gpus": 1}, **work, **launcher, **fields})
    return Submission(caller=ADA, spec=spec, key=key, fingerprint="same")


def submit(ctx: Context, submission: Submission) -> job_submission.Submitted:
    """Submits a job or a sweep."""
    return job_submission.submit(ctx.db, ctx.store, ctx.now_us, submission)


def job(ctx: Context, **fields: Any) -> api.Job:
    """Submits one job."""
    made = submit(ctx, order(**fields)).made
    assert isinstance(made, api.Job)
    return made


def sweep(ctx: Context, trials: int = 3, **fields: Any) -> api.Group:
    """Submits a sweep of so many trials, unless its `sweep` is given."""
    asked = {"sweep": {"env.TRIAL": {"range": [0, trials]}}, **fields}
    made = submit(ctx, order(**asked)).made
    assert isinstance(made, api.Group)
    return made


def trials(ctx: Context, group: api.Group) -> list[str]:
    """Ids of a sweep's jobs, in order."""
    with ctx.db.read() as tx:
        return list(tx.scalars(select(Job.id).where(Job.group_id == group.id).order_by(Job.trial)))


def why(ctx: Context, job_id: str) -> api.Why:
    """What `ada` is told of a job."""
    return overview.why(ctx.db, ctx.loader, ctx.estimator, ctx.now_us(), job_id, ADA)


def report(ctx: Context, attempt: str, start: int, steps: range, rank: int = 0, **values: Any) -> None:
    """Records of an attempt: line `start` of its file and the following ones, one a step."""
    stream = f"rank-{rank}-1-1"
    batch = plane.batch(start, steps, rank=rank, stream=stream, **values)
    ingest.record(ctx.db, ctx.memory, memory.facts(ctx.db, ctx.memory, attempt), batch)
