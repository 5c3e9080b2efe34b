"""The rule of who reads a job, for one job and as a condition of lists."""

from dataclasses import dataclass

import pytest
from sqlalchemy import select

from service.db.models import Job
from service.identity.callers import Caller
from service.identity.visibility import HIDDEN, may_read, may_read_env, readable, shown_name, without_values


@dataclass
class Owned:
    user_id: str
    project: str


def caller(user_id: str = "ada", *projects: str, admin: bool = False) -> Caller:
    return Caller(
        user_id=user_id,
        name=user_id,
        admin=admin,
        scopes=frozenset({"read"}),
        node=None,
        token_id="token",
        projects=frozenset(projects),
    )


@pytest.mark.parametrize(
    ("who", "reads", "values"),
    [
        (caller("ada"), True, True),
        (caller("eve", admin=True), True, True),
        (caller("bob", "vision", "text"), True, False),
        (caller("bob", "text"), False, False),
        (caller("bob"), False, False),
    ],
)
def test_owner_administrators_and_whom_the_project_names(who: Caller, reads: bool, values: bool) -> None:
    job = Owned("ada", "vision")
    assert may_read(who, job) is reads
    assert may_read_env(who, job.user_id) is values
    assert shown_name(who, job, "net") == ("net" if reads else HIDDEN)


def test_the_condition_of_lists_says_the_same() -> None:
    query = str(select(Job.id).where(readable(caller("bob", "text", "vision"), Job)))
    assert "jobs.user_id = " in query
    assert "jobs.project IN " in query
    assert "user_id" not in str(select(Job.id).where(readable(caller(admin=True), Job)))


def test_variables_keep_their_names_alone() -> None:
    spec = {"command": ["true"], "env": {"KEY": "secret", "LANG": "C"}}
    assert without_values(spec) == {"command": ["true"], "env": {"KEY": HIDDEN, "LANG": HIDDEN}}
    assert without_values({"command": ["true"]})["env"] == {}
    assert spec["env"] == {"KEY": "secret", "LANG": "C"}
