"""Who changes what: every change of a job or sweep, with every role, in one's own, a shared and a foreign project."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from service.app import bare
from tests.support.live import Live
from tests.support.problems import kind
from torchyard.api import PREFIX

#: Roles on the installation and in the project `vision`, of which ada is a member; nobody is one of `text`.
ROLES: dict[str, tuple[str, str | None]] = {
    "ada": ("member", "member"),
    "lead": ("member", "administrator"),
    "mate": ("member", "member"),
    "eve": ("member", None),
    "vera": ("viewer", None),
    "guest": ("viewer", "member"),
    "chief": ("viewer", "administrator"),
    "looker": ("member", "viewer"),
}
OWN_VIEWERS = {"vera"}
#: Who submits to which project.
SUBMIT = {"vision": {"ada", "lead", "mate", "eve", "guest", "chief"}, "text": {"ada", "lead", "mate", "eve", "looker"}}
#: Who changes ada's jobs there: in `text` it is hers alone.
CHANGE = {"vision": {"ada", "lead", "chief"}, "text": {"ada"}}
#: Every change of a job, a sweep or a checkpoint.
CHANGES = [
    ("POST", f"/jobs/{{job}}/{word}", None)
    for word in ("hold", "release", "checkpoint", "stacks", "discard", "outputs/bring", "cancel")
]
CHANGES += [("PATCH", "/jobs/{job}", {"name": "n"}), ("DELETE", "/checkpoints/x", None)]
CHANGES += [("POST", f"/groups/{{group}}/{word}", None) for word in ("hold", "release", "resume", "cancel")]


#: Whoever may submit to the project makes copies; links are `test_owner_and_administrators_make_and_revoke_them`'s.
OTHERWISE = {("POST", "/jobs/{job}/rerun"), ("POST", "/jobs/{job}/link"), ("DELETE", "/jobs/{job}/link")}


def test_no_way_to_change_a_job_is_left_out() -> None:
    found = set()
    for path, methods in bare().openapi()["paths"].items():
        place = path.removeprefix(PREFIX).replace("{job_id}", "{job}").replace("{checkpoint_id}", "x")
        if place.startswith(("/jobs/", "/groups/", "/checkpoints/")):
            found |= {(method.upper(), place) for method in methods if method in {"post", "put", "patch", "delete"}}
    assert found == {(method, path) for method, path, _ in CHANGES} | OTHERWISE


def add(live: Live, name: str, **fields: Any) -> httpx.Client:
    answer = live.client.post(f"{PREFIX}/users", json={"name": name, **fields})
    assert answer.status_code == 201, answer.text
    made = live.client.post(f"{PREFIX}/tokens", json={"name": "t", "scopes": ["submit"], "user": name})
    assert made.status_code == 201, made.text
    return live.as_token(made.json()["secret"])


def job(client: httpx.Client, project: str, **fields: Any) -> httpx.Response:
    return client.post(f"{PREFIX}/jobs", json={"project": project, "command": ["true"], "launcher": "none"} | fields)


def set_role(live: Live, project: str, user: str, role: str | None) -> None:
    body = None if role is None else {"role": role}
    assert live.client.put(f"{PREFIX}/projects/{project}/members/{user}", json=body).status_code == 204


@pytest.fixture
def people(live_service: Live) -> Iterator[dict[str, httpx.Client]]:
    for project in ("vision", "text"):
        answer = live_service.client.post(f"{PREFIX}/projects", json={"name": project, "visibility": "everyone"})
        assert answer.status_code == 201
    with ExitStack() as stack:
        found = {}
        for name, (role, in_project) in ROLES.items():
            found[name] = stack.enter_context(add(live_service, name, role=role))
            if in_project is not None:
                set_role(live_service, "vision", name, in_project)
        yield found


def test_who_submits_and_changes_what(live_service: Live, people: dict[str, httpx.Client]) -> None:
    for name, client in people.items():
        for project in ("vision", "text"):
            for path in ("/jobs", "/jobs?dry_run=true"):
                body = {"project": project, "command": ["true"], "launcher": "none"}
                answer = client.post(PREFIX + path, json=body)
                assert answer.is_success == (name in SUBMIT[project]), (name, project, answer.text)
                assert answer.is_success or f"{name} has the role viewer" in answer.json()["detail"]
    for project in ("vision", "text"):
        work = job(people["ada"], project).json()["id"]
        sweep = job(people["ada"], project, command=["true", "{p}"], sweep={"p": ["a", "b"]}).json()["id"]
        for name in sorted(ROLES, key=lambda each: each in CHANGE[project]):  # those that may not come first
            for method, path, body in CHANGES:
                if "checkpoints" in path:
                    continue  # `test_a_checkpoint_is_deleted_by_whom_its_job_is_changed`
                answer = people[name].request(method, PREFIX + path.format(job=work, group=sweep), json=body)
                where = (name, project, method, path, answer.text)
                assert (answer.status_code == 403) == (name not in CHANGE[project]), where
            rerun = people[name].post(f"{PREFIX}/jobs/{work}/rerun")
            assert rerun.is_success == (name in SUBMIT[project]), (name, project, rerun.text)


def test_a_project_takes_jobs_of_its_members_alone(live_service: Live, people: dict[str, httpx.Client]) -> None:
    outside = job(people["eve"], "vision").json()["id"]
    path = f"{PREFIX}/projects/vision"
    changed = live_service.client.patch(path, json={"submitters": "members"}).json()
    assert (changed["submitters"], changed["visibility"]) == ("members", "everyone"), "what is not named stays"
    inside = job(people["ada"], "vision").json()["id"]
    body = {"project": "vision", "command": ["true"], "launcher": "none"}
    ways: list[tuple[str, Any]] = [("/jobs", body), ("/jobs?dry_run=true", body), (f"/jobs/{inside}/rerun", None)]
    ways += [("/jobs", {**body, "command": ["true", "{p}"], "sweep": {"p": ["a"]}})]
    ways += [(f"/jobs/{outside}/rerun", None)]
    for name, client in people.items():
        closed = ["vision"] if name in {"eve", "vera"} else []
        assert client.get(f"{PREFIX}/settings").json()["closed_projects"] == closed
        for way, content in ways:
            answer = client.post(PREFIX + way, json=content)
            assert answer.is_success == (name in SUBMIT["vision"] - {"eve"}), (name, way, answer.text)
        if name == "eve":
            assert kind(answer) == (403, "forbidden")
            assert "yard projects members add vision eve" in answer.json()["detail"]
    own = people["eve"].post(f"{PREFIX}/jobs/{inside}/rerun", json={"changes": {"project": "text"}})
    assert own.status_code == 201, "a copy in another project is no job of this one"
    moved = people["eve"].post(f"{PREFIX}/jobs/{own.json()['id']}/rerun", json={"changes": {"project": "vision"}})
    assert kind(moved) == (403, "forbidden")
    assert people["eve"].post(f"{PREFIX}/jobs/{outside}/cancel").status_code == 200, "it was submitted in time"
    assert job(live_service.client, "vision").status_code == 201
    set_role(live_service, "vision", "eve", "member")
    assert job(people["eve"], "vision").status_code == 201
    assert live_service.client.patch(path, json={"submitters": "nobody"}).status_code == 422
    assert changed["restarts"] is True
    recipe = {"project": "vision", "recipe": {"model": "digits_cnn"}}
    assert "may be put back" in live_service.client.post(f"{PREFIX}/jobs?dry_run=true", json=recipe).text
    assert live_service.client.patch(path, json={"restarts": False}).json()["restarts"] is False
    told = live_service.client.post(f"{PREFIX}/jobs?dry_run=true", json=recipe).text
    assert "never put back to start over, as project vision wants it" in told
    assert live_service.client.patch(path, json={"restarts": True}).is_success
    policy = f"{PREFIX}/policy"
    stored = live_service.client.get(policy).json()
    assert live_service.client.put(policy, json=stored | {"restarts": 0}).is_success
    told = live_service.client.post(f"{PREFIX}/jobs?dry_run=true", json=recipe).text
    assert "as the policy has restarts: 0" in told
    new = {"name": "closed", "submitters": "members"}
    assert live_service.client.post(f"{PREFIX}/projects", json=new).json()["submitters"] == "members"
    assert kind(job(people["ada"], "closed")) == (403, "forbidden")
    told = live_service.client.get(f"{PREFIX}/audit", params={"action": "project"}).json()["items"]
    assert {"submitters": "members"} in [each["data"] for each in told if each["action"] == "project.change"]


def test_a_viewer_of_a_project_leaves_own_jobs_there_alone(live_service: Live, people: dict[str, httpx.Client]) -> None:
    work = job(people["mate"], "vision").json()["id"]
    set_role(live_service, "vision", "mate", "viewer")
    refused = people["mate"].post(f"{PREFIX}/jobs/{work}/cancel")
    assert kind(refused) == (403, "forbidden")
    assert "mate has the role viewer in project vision" in refused.json()["detail"]
    assert "yard projects members add vision mate --role member" in refused.json()["detail"]
    assert people["mate"].get(f"{PREFIX}/jobs/{work}").status_code == 200
    set_role(live_service, "vision", "mate", None)
    assert kind(people["mate"].post(f"{PREFIX}/jobs/{work}/cancel")) == (403, "forbidden"), "no role: as it is"
    set_role(live_service, "vision", "mate", "member")
    assert people["mate"].post(f"{PREFIX}/jobs/{work}/cancel").json()["state"] == "cancelled"


def test_who_administers_a_project(live_service: Live, people: dict[str, httpx.Client]) -> None:
    ways: list[tuple[str, str, Any]] = [("PATCH", "", {"visibility": "private"}), ("PUT", "/members/eve", None)]
    ways += [("PATCH", "", {"submitters": "members"})]
    ways += [("PUT", "/members/eve", {"role": "viewer"}), ("DELETE", "/members/eve", None)]
    for name in ROLES:
        for project, allowed in (("vision", {"lead", "chief"}), ("text", set())):
            for method, path, body in ways:
                answer = people[name].request(method, f"{PREFIX}/projects/{project}{path}", json=body)
                assert answer.is_success == (name in allowed), (name, project, method, answer.text)
                assert answer.is_success or kind(answer) == (403, "forbidden")
        assert kind(people[name].post(f"{PREFIX}/projects", json={"name": "more"})) == (403, "forbidden")
    # Whoever administers a project reads all in it, but no values of variables, and nothing elsewhere.
    work = job(people["ada"], "vision", env={"KEY": "value-of-ada"}).json()["id"]
    shown = people["lead"].get(f"{PREFIX}/jobs/{work}")
    assert shown.status_code == 200
    assert "value-of-ada" not in shown.text
    assert kind(people["mate"].get(f"{PREFIX}/jobs/{work}")) == (404, "not-found")
    live_service.client.patch(f"{PREFIX}/projects/text", json={"visibility": "private"})
    other = job(people["ada"], "text").json()["id"]
    assert kind(people["lead"].get(f"{PREFIX}/jobs/{other}")) == (404, "not-found")


def test_a_token_that_only_reads_administers_nothing(live_service: Live, people: dict[str, httpx.Client]) -> None:
    made = people["lead"].post(f"{PREFIX}/tokens", json={"name": "r", "scopes": ["read"]}).json()
    with live_service.as_token(made["secret"]) as reader:
        assert kind(reader.patch(f"{PREFIX}/projects/vision", json={})) == (403, "forbidden")


def test_roles_are_set_shown_and_taken(live_service: Live, people: dict[str, httpx.Client]) -> None:
    shown = {each["name"]: each for each in live_service.client.get(f"{PREFIX}/projects").json()}
    assert shown["vision"]["roles"] == {name: role for name, (_, role) in ROLES.items() if role is not None}
    settings = people["guest"].get(f"{PREFIX}/settings").json()
    assert (settings["user"]["role"], settings["roles"]) == ("viewer", {"vision": "member"})
    assert settings["scopes"] == ["read", "submit"]
    assert people["vera"].get(f"{PREFIX}/settings").json()["scopes"] == ["read"]

    def change(name: str, **changes: Any) -> httpx.Response:
        return live_service.client.patch(f"{PREFIX}/users/{name}", json=changes)

    assert change("vera", role="member").json()["role"] == "member"
    assert job(people["vera"], "text").status_code == 201
    assert change("vera", role="administrator").json()["admin"] is True
    assert change("vera", admin=False).json()["role"] == "member"
    assert change("vera", role="viewer").json()["admin"] is False
    assert change("vera", admin=False).json()["role"] == "viewer", "who is no administrator stays what they are"
    assert kind(change("vera", role="viewer", admin=True)) == (422, "invalid-request")
    assert kind(change("vera", role="boss")) == (422, "invalid-request")
    both = {"name": "x", "admin": True, "role": "viewer"}
    assert kind(live_service.client.post(f"{PREFIX}/users", json=both)) == (422, "invalid-request")
    told = [each["action"] for each in live_service.client.get(f"{PREFIX}/audit").json()["items"]]
    assert told.count("project.add-member") == sum(role is not None for _, role in ROLES.values())


def test_a_viewer_ends_what_they_had_made_as_a_member(live_service: Live, people: dict[str, httpx.Client]) -> None:
    made = people["eve"].post(f"{PREFIX}/tokens", json={"name": "t", "scopes": ["submit"]}).json()
    reads = people["eve"].post(f"{PREFIX}/tokens", json={"name": "t", "scopes": ["read"]}).json()
    live_service.client.patch(f"{PREFIX}/users/eve", json={"role": "viewer"})
    with live_service.as_token(reads["secret"]) as reader:
        assert kind(reader.post(f"{PREFIX}/tokens/{made['id']}/rotate")) == (403, "forbidden")
    assert people["eve"].delete(f"{PREFIX}/tokens/{made['id']}").status_code == 204


def test_a_service_account_works_in_its_project_alone(live_service: Live, people: dict[str, httpx.Client]) -> None:
    theirs = job(people["ada"], "vision").json()["id"]
    elsewhere = job(people["ada"], "text").json()["id"]
    with add(live_service, "ci", project="vision") as account:
        own = job(account, "vision")
        assert own.status_code == 201
        assert account.post(f"{PREFIX}/jobs/{own.json()['id']}/cancel").status_code == 200
        refused = job(account, "text")
        assert kind(refused) == (403, "forbidden")
        assert "ci is a service account of project vision" in refused.json()["detail"]
        assert kind(account.post(f"{PREFIX}/jobs/{theirs}/cancel")) == (403, "forbidden")
        assert account.get(f"{PREFIX}/jobs/{theirs}").status_code == 200
        # Everybody reads the project text, but people.
        assert kind(account.get(f"{PREFIX}/jobs/{elsewhere}")) == (404, "not-found")
        assert kind(live_service.client.put(f"{PREFIX}/projects/text/members/ci")) == (422, "invalid-request")
        leader = live_service.client.put(f"{PREFIX}/projects/vision/members/ci", json={"role": "administrator"})
        assert kind(leader) == (422, "invalid-request")
        assert kind(live_service.client.delete(f"{PREFIX}/projects/vision/members/ci")) == (409, "conflict")
        for changes in ({"role": "administrator"}, {"admin": True}, {"role": "member"}):
            answer = live_service.client.patch(f"{PREFIX}/users/ci", json=changes)
            assert kind(answer) == (422, "invalid-request"), changes
        set_role(live_service, "vision", "ci", "viewer")
        assert kind(job(account, "vision")) == (403, "forbidden")
    for wrong in (
        {"project": "none"},
        {"project": "vision", "role": "administrator"},
        {"project": "vision", "admin": True},
    ):
        answer = live_service.client.post(f"{PREFIX}/users", json={"name": "ci2", **wrong})
        assert answer.status_code in (404, 422), answer.text
    node = {"name": "x", "scopes": ["node"], "node": "box", "user": "ci"}
    assert kind(live_service.client.post(f"{PREFIX}/tokens", json=node)) == (422, "invalid-request")
    shown = {each["name"]: each for each in live_service.client.get(f"{PREFIX}/users").json()}
    assert (shown["ci"]["project"], shown["ci"]["admin"], shown["ada"]["project"]) == ("vision", False, None)
