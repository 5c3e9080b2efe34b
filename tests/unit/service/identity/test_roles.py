"""Roles: which counts where, and the words of the refusals."""

from dataclasses import dataclass
from typing import Any

import pytest

from service.errors import ProblemError
from service.identity import roles
from service.identity.callers import Caller, narrow
from torchyard.api import Role


@dataclass
class Work:
    user_id: str
    project: str


def caller(**fields: Any) -> Caller:
    given: dict[str, Any] = {"user_id": "ada", "name": "ada", "admin": False, "scopes": frozenset({"submit"})}
    return Caller(**given | {"node": None, "token_id": "t"} | fields)


@pytest.mark.parametrize(
    ("who", "role"),
    [
        (caller(), "member"),
        (caller(role="viewer"), "viewer"),
        (caller(role="viewer", roles={"vision": "member"}), "member"),
        (caller(roles={"vision": "viewer"}), "viewer"),
        (caller(roles={"text": "viewer"}), "member"),
        (caller(roles={"vision": "administrator"}), "administrator"),
        (caller(role="administrator"), "member"),  # by a token without the scope admin
        (caller(role="administrator", admin=True, roles={"vision": "viewer"}), "administrator"),
    ],
)
def test_the_role_in_the_project_takes_the_place_of_the_other(who: Caller, role: Role) -> None:
    assert roles.role_in(who, "vision") == role


def test_refusals_name_the_role_and_the_mend() -> None:
    with pytest.raises(ProblemError, match=r"ada has the role viewer in project vision.*--role member"):
        roles.may_submit(caller(roles={"vision": "viewer"}), "vision", "everyone")
    with pytest.raises(ProblemError, match="another user's"):
        roles.may_change(caller(), Work("eve", "vision"))
    with pytest.raises(ProblemError, match="yours there is member"):
        roles.may_administer(caller(), "vision")
    with pytest.raises(ProblemError, match="service account of project vision"):
        roles.may_submit(caller(role="viewer", roles={"vision": "member"}, service_account=True), "text", "everyone")
    roles.may_change(caller(), Work("ada", "vision"))
    assert "ada has the role viewer" in roles.missing_scope(caller(role="viewer"), "submit").detail
    assert "scope node" in roles.missing_scope(caller(role="viewer"), "node").detail


@pytest.mark.parametrize(
    ("who", "refused"),
    [
        (caller(), True),
        (caller(roles={"text": "administrator"}), True),
        (caller(role="administrator"), True),  # by a token without the scope admin
        (caller(role="administrator", admin=True), False),
        (caller(roles={"vision": "member"}), False),
        (caller(role="viewer", roles={"vision": "member"}), False),
    ],
)
def test_a_project_may_take_jobs_of_its_members_alone(who: Caller, refused: bool) -> None:
    assert roles.is_closed(who, "vision", "members") == refused
    assert not roles.is_closed(who, "vision", "everyone")
    if refused:
        with pytest.raises(ProblemError, match=r"only its members submit to vision.*projects members add vision ada"):
            roles.may_submit(who, "vision", "members")
    else:
        roles.may_submit(who, "vision", "members")


@pytest.mark.parametrize(
    ("role", "in_projects", "left"),
    [
        ("administrator", {}, {"admin", "submit", "read", "node"}),
        ("member", {}, {"submit", "read", "node"}),
        ("viewer", {}, {"read", "node"}),
        ("viewer", {"vision": "viewer"}, {"read", "node"}),
        ("viewer", {"vision": "member"}, {"submit", "read", "node"}),
    ],
)
def test_a_role_narrows_what_tokens_allow(role: Role, in_projects: dict[str, Role], left: set[str]) -> None:
    assert narrow(frozenset({"admin", "submit", "read", "node"}), role, in_projects) == left
