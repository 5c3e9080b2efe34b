"""Submissions without HTTP: what a person posts, through the same function as the route."""

from typing import Any

from service.auth import Caller
from service.context import Context
from service.jobs import submit
from torchyard import api
from torchyard.spec import JobSpec

#: The user that `box.add_people` makes.
ADA = Caller(user_id="user-ada", name="ada", admin=True, scopes=frozenset({"admin"}), node=None, token_id="token")


def order(key: str | None = None, **fields: Any) -> submit.Order:
    """An order of `ada`; without work of its own it is a command that does nothing."""
    work = {} if fields.keys() & {"recipe", "command"} else {"command": ["true"]}
    launcher = {} if "recipe" in fields else {"launcher": "none"}
    spec = JobSpec.model_validate({"resources": {"gpus": 1}, **work, **launcher, **fields})
    return submit.Order(caller=ADA, spec=spec, key=key, fingerprint="same")


def job(ctx: Context, **fields: Any) -> api.Job:
    """Submits one job."""
    made = submit.submit(ctx, order(**fields)).made
    assert isinstance(made, api.Job)
    return made


def sweep(ctx: Context, trials: int = 3, **fields: Any) -> api.Group:
    """Submits a sweep of so many trials, unless its `sweep` is given."""
    asked = {"sweep": {"env.TRIAL": {"range": [0, trials]}}, **fields}
    made = submit.submit(ctx, order(**asked)).made
    assert isinstance(made, api.Group)
    return made
