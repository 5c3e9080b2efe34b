"""Who reads what: every route that reads, with every role, for jobs of projects that all, some or none may read.

Each project has a job that has ended and left everything that jobs leave, one that runs, one that waits and a sweep.
Whatever is theirs alone has the project's name in it, so an answer that should not tell of them must not contain it.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from httpx_sse import EventSource

from service.app import bare
from service.identity.visibility import HIDDEN
from tests.support import scripted
from tests.support.live import Live
from tests.support.problems import kind
from tests.support.snapshots import snapshot
from torchyard import wire
from torchyard.api import PREFIX

#: Projects by visibility, and who of the roles may read ada's jobs in them beside her and the administrator.
PROJECTS: dict[str, set[str]] = {
    "private": {"lead"},
    "project": {"lead", "mate", "looker", "guest", "bot"},
    "everyone": {"lead", "mate", "looker", "guest", "eve", "vera"},
}
#: Who has a token that only reads; all others may submit, as far as their roles let them.
READERS = {"looker"}
#: Roles in all three projects.
MEMBERS = {"ada": "member", "mate": "member", "looker": "member", "lead": "administrator", "guest": "viewer"}
#: Beside them: who is in no project, on the installation a member or a viewer, and a service account of one project.
OTHERS = {"eve": {"role": "member"}, "vera": {"role": "viewer"}, "bot": {"project": "project"}}
ROLES = ("admin", *MEMBERS, *OTHERS)
#: One of each kind: who owns the jobs, has a role in the project, is of one project only, or has nothing to do with it.
KINDS = ("ada", "guest", "bot", "eve")

#: Each route that reads has its place here. Of one job or sweep: unknown to those who may not read it.
OF_JOB = {
    f"/jobs/{{job_id}}{rest}" for rest in ("", "/events", "/attempts", "/why", "/stacks", "/outputs", "/checkpoints")
}
OF_JOB |= {f"/jobs/{{job_id}}{rest}" for rest in ("/logs", "/logs/streams", "/logs/stream", "/metrics", "/telemetry")}
OF_JOB |= {"/jobs/{job_id}/outputs/{name:file}", "/checkpoints/{checkpoint_id}", "/metrics/curves"}
OF_JOB |= {"/jobs/{job_id}/timing", "/jobs/{job_id}/link", "/jobs/{job_id}/environment", "/metrics/extremes"}
OF_JOB |= {
    f"/jobs/{{job_id}}{rest}" for rest in ("/logs/index", "/logs/search", "/logs/file", "/code", "/code/{name:file}")
}
OF_JOB |= {"/checkpoints/{checkpoint_id}/files/{name:file}", "/groups/{group}", "/groups/{group}/trials"}
#: Lists of jobs and sweeps: without those that the caller may not read.
LISTS = {"/jobs", "/jobs/counts", "/jobs/facets", "/groups"}
#: The box: jobs that the caller may not read are there with user, resources and times, and without their names.
BOX = {"/queue", "/nodes", "/nodes/idle", "/nodes/timeline"}
#: Nothing of a single job, or hours of users and projects alone, which share the box.
NO_JOB = {
    "/queue/calibration",
    "/nodes/{name}/telemetry",
    "/nodes/utilization",
    "/settings",
    "/users",
    "/tokens",
    "/projects",
    "/policy",
}
NO_JOB |= {"/attention", "/notices", "/secrets", "/quotas", "/usage", "/usage/digest", "/reservations"}
ADMIN = {"/audit"}
#: What changes, read by `test_streams_and_caches_tell_only_of_what_may_be_read`.
STREAM = {"/stream", "/live"}
OPEN = {"/healthz", "/readyz", "/metrics"}
#: Ways in, for whoever has no session yet.
SIGN_IN = {"/session/ways", "/session/oidc", "/session/oidc/callback"}
#: Public links, which no role opens: `test_shared.py`.
LINKED = {"/shared/{token}", "/shared/{token}/metrics"}
#: For nodes, by their own tokens: people reach none of them (`test_access.py`).
NODES = "/agent/"


def routes() -> Iterator[str]:
    for route in bare().routes:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()):
            path = route.path.removeprefix(PREFIX)
            if not path.startswith(NODES):
                yield path


@dataclass(frozen=True, kw_only=True)
class Work:
    """The jobs of one project, and what stands for them in paths."""

    name: str
    ended: dict[str, Any]
    running: dict[str, Any]
    waiting: dict[str, Any]
    sweep: dict[str, Any]
    checkpoint: str

    @property
    def mark(self) -> str:
        """Is in whatever is this project's jobs' alone."""
        return f"of-{self.name}"

    @property
    def value(self) -> str:
        """Value of a variable of its jobs."""
        return f"value-of-{self.name}"

    def path(self, route: str) -> str:
        parts = {"job_id": self.ended["id"], "checkpoint_id": self.checkpoint, "group": self.sweep["id"]}
        name = f"file-{self.mark}" if "outputs" in route or "code" in route else "state.pt"
        metrics = f"?jobs={self.ended['id']}&names=loss-{self.mark}"
        query = {"/logs/search": "?q=log", "/curves": metrics, "/extremes": metrics}
        asked = next((words for end, words in query.items() if route.endswith(end)), "")
        return re.sub(r"{([a-z_]+)(:file)?}", lambda found: parts.get(found[1], name), route) + asked


@dataclass(frozen=True, kw_only=True)
class Box:
    """A box in use by several people."""

    live: Live
    people: dict[str, httpx.Client]
    work: dict[str, Work]
    agent: scripted.Agent
    running: dict[str, scripted.Attempt]

    def get(self, role: str, path: str, **query: Any) -> httpx.Response:
        return self.people[role].get(PREFIX + path, params=query or None)


def may_read(role: str, project: str) -> bool:
    return role in {"admin", "ada"} | PROJECTS[project]


def user(live: Live, name: str, scope: str, **fields: str) -> httpx.Client:
    assert live.client.post(f"{PREFIX}/users", json={"name": name, **fields}).status_code == 201
    made = live.client.post(f"{PREFIX}/tokens", json={"name": "t", "scopes": [scope], "user": name})
    assert made.status_code == 201, made.text
    return live.as_token(made.json()["secret"])


def submitted(client: httpx.Client, project: str, **fields: Any) -> dict[str, Any]:
    spec = {"name": f"name-of-{project}", "project": project, "command": ["true", f"word-of-{project}"]}
    spec |= {"launcher": "none", "tags": [f"tag-of-{project}"], "env": {"KEY": f"value-of-{project}"}} | fields
    answer = client.post(f"{PREFIX}/jobs", json=spec)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def worked(live: Live, ada: httpx.Client, agent: scripted.Agent, project: str) -> tuple[Work, scripted.Attempt]:
    mark = f"of-{project}"
    ended = submitted(
        ada, project, resources={"gpus": 0}, code=snapshot(ada, f"code-{mark}".encode(), name=f"file-{mark}")
    )
    attempt = agent.start()
    attempt.report(range(3), **{f"loss-{mark}": 0.5})
    attempt.write(f"log-{mark}\n")
    attempt.checkpoint(2, {"state.pt": f"state-{mark}".encode()}, **{f"metric-{mark}": 0.5})
    attempt.output({f"file-{mark}": f"content-{mark}".encode()})
    agent.sample({f"sample-{mark}": 1.0}, attempt)
    attempt.environment(wire.Environment(interpreter=f"/{mark}/bin/python", packages={f"package-{mark}": "1.0"}))
    attempt.end(exit_code=1, failed_rank=0, message=f"error-{mark}", traceback=f"traceback-{mark}")
    running = submitted(ada, project, resources={"gpus": 1})
    holding = agent.start()
    waiting = submitted(ada, project, resources={"gpus": 3})
    sweep = submitted(ada, project, command=["true", "{p}"], sweep={"p": [mark, "b"]}, resources={"gpus": 3})
    checkpoint = live.client.get(f"{PREFIX}/jobs/{ended['id']}/checkpoints").json()[0]["id"]
    work = Work(name=project, ended=ended, running=running, waiting=waiting, sweep=sweep, checkpoint=checkpoint)
    return work, holding


@pytest.fixture
def shared_box(live_service: Live) -> Iterator[Box]:
    with ExitStack() as stack:
        people = {"admin": live_service.client}
        for project in PROJECTS:
            made = live_service.client.post(f"{PREFIX}/projects", json={"name": project, "visibility": project})
            assert made.status_code == 201, made.text
        for name in ROLES[1:]:
            scope = "read" if name in READERS else "submit"
            people[name] = stack.enter_context(user(live_service, name, scope, **OTHERS.get(name, {})))
        for project in PROJECTS:
            for name, role in MEMBERS.items():
                path = f"{PREFIX}/projects/{project}/members/{name}"
                assert live_service.client.put(path, json={"role": role}).status_code == 204
        agent = stack.enter_context(scripted.agent(live_service, devices=3))
        worked_on = {project: worked(live_service, people["ada"], agent, project) for project in PROJECTS}
        yield Box(
            live=live_service,
            people=people,
            agent=agent,
            work={project: work for project, (work, _) in worked_on.items()},
            running={project: attempt for project, (_, attempt) in worked_on.items()},
        )


def test_every_route_that_reads_has_its_place() -> None:
    placed = [OF_JOB, LISTS, BOX, NO_JOB, ADMIN, STREAM, OPEN, SIGN_IN, LINKED]
    assert sorted(routes()) == sorted(path for each in placed for path in each)


def check_of_jobs(box: Box) -> None:
    """With every role on one database; on the other, which is asked the same, with one of each kind."""
    for role in ROLES if box.live.context.db.is_sqlite else KINDS:
        for project, work in box.work.items():
            for route in sorted(OF_JOB):
                answer = box.get(role, work.path(route))
                where = (role, project, route, answer.text[:300])
                if may_read(role, project):
                    assert answer.status_code == 200, where
                    assert (work.value in answer.text) == (role in {"admin", "ada"} and '"env"' in answer.text), where
                else:
                    assert kind(answer) == (404, "not-found"), where
                    assert work.mark not in answer.text.replace(work.path(route), ""), where


def check_numbers(box: Box) -> None:
    """A number is no way round."""
    for role in ROLES:
        for project, work in box.work.items():
            for path in (f"/jobs/{work.ended['number']}", f"/groups/{work.sweep['number']}"):
                assert box.get(role, path).status_code == (200 if may_read(role, project) else 404)
            sweep = box.get(role, f"/jobs/{work.sweep['number']}")
            assert ("is a sweep" in sweep.text) == may_read(role, project)


def check_lists(box: Box) -> None:
    for role in ROLES:
        for route in sorted(LISTS | NO_JOB):
            path = route.replace("{name}", box.get("admin", "/nodes").json()["items"][0]["name"])
            answer = box.get(role, path, **({"by": "tag"} if route == "/jobs/facets" else {}))
            assert answer.status_code == 200, (role, route, answer.text)
            for project, work in box.work.items():
                shown = work.mark in answer.text
                listed = route in {"/jobs", "/jobs/facets", "/groups"} and may_read(role, project)
                own = route == "/attention" and role == "ada"  # her failures
                assert shown == (listed or own), (role, route, project)
                assert role in {"admin", "ada"} or work.value not in answer.text, (role, route)
        readable = [project for project in PROJECTS if may_read(role, project)]
        assert sum(box.get(role, "/jobs/counts").json()["states"].values()) == 5 * len(readable)
        for project in PROJECTS:
            # A filter finds nothing either that may not be read.
            for query in ({"q": f"of-{project}"}, {"tag": f"tag-of-{project}"}, {"project": project}, {"user": "ada"}):
                shown = box.get(role, "/jobs", **query).text
                assert (f"of-{project}" in shown) == may_read(role, project), (role, project, query)
            trials = box.get(role, "/jobs", group=box.work[project].sweep["id"]).json()["items"]
            assert len(trials) == 2 * may_read(role, project)


def check_box(box: Box) -> None:
    for role in ROLES:
        queue = {entry["job"]: entry for entry in box.get(role, "/queue").json()["items"]}
        devices = box.get(role, "/nodes").json()["items"][0]["devices"]
        held = {device["job"]: device for device in devices}
        idle = box.get(role, "/nodes/idle").raise_for_status().text
        timeline = {job["number"]: job for job in box.get(role, "/nodes/timeline").json()["jobs"]}
        for project, work in box.work.items():
            name = work.waiting["name"] if may_read(role, project) else HIDDEN
            waits, runs = queue[work.waiting["id"]], held[work.running["id"]]
            assert (waits["name"], waits["user"], waits["gpus"]) == (name, "ada", 3)
            assert (runs["job_name"], runs["user"]) == (name, "ada")
            assert runs["holders"][0]["job_name"] == name
            seen = (waits["readable"], runs["holders"][0]["readable"])
            assert seen == (may_read(role, project),) * 2
            lanes = timeline[work.running["number"]]
            assert (lanes["name"], lanes["user"], lanes["readable"]) == (name, "ada", seen[0])
            for text in (json.dumps(waits), json.dumps(devices), json.dumps(timeline), idle):
                assert may_read(role, project) or work.mark not in text, (role, project)


def check_the_rest(box: Box) -> None:
    for role in ROLES:
        assert box.get(role, "/audit").status_code == (200 if role == "admin" else 403)
        for path in sorted(OPEN):
            answer = box.people[role].get(path)
            assert answer.status_code == 200
            assert "of-" not in answer.text.replace("of-date", "")


def check_changes(box: Box) -> None:
    """What may not be read is unknown to changes too; what may be read is still its owner's."""
    ways = [
        ("POST", f"/jobs/{{job_id}}/{word}")
        for word in ("cancel", "hold", "release", "checkpoint", "discard", "stacks")
    ]
    ways += [
        ("POST", "/jobs/{job_id}/outputs/bring"),
        ("PATCH", "/jobs/{job_id}"),
        ("DELETE", "/checkpoints/{checkpoint_id}"),
        ("DELETE", "/jobs/{job_id}/link"),
    ]
    ways += [("POST", f"/groups/{{group}}/{word}") for word in ("cancel", "hold", "release", "resume")]
    for role in ("mate", "guest", "bot", "eve"):
        for project, work in box.work.items():
            for method, route in ways:
                body = {"json": {}} if method != "DELETE" else {}
                answer = box.people[role].request(method, PREFIX + work.path(route), **body)
                wanted = (403, "forbidden") if may_read(role, project) else (404, "not-found")
                assert kind(answer) == wanted, (role, project, method, route, answer.text)


def check_reruns(box: Box) -> None:
    for role in ("mate", "eve"):
        for project, work in box.work.items():
            path = f"{PREFIX}/jobs/{work.ended['id']}/rerun"
            answer = box.people[role].post(path, json={"changes": {"command": ["env"]}})
            if not may_read(role, project):
                assert kind(answer) == (404, "not-found")
                continue
            assert kind(answer) == (422, "invalid-request")
            assert "KEY" in answer.text
            assert work.value not in answer.text
            for env, values in (({"KEY": "mine"}, {"KEY": "mine"}), ({"KEY": None}, {}), (None, {})):
                answer = box.people[role].post(path, json={"changes": {"env": env}})
                assert answer.status_code == 201, answer.text
                assert answer.json()["spec"]["env"] == values


def check_dependencies(box: Box) -> None:
    for role in ("mate", "eve"):
        for project, work in box.work.items():
            for ref in (work.running["id"], str(work.sweep["number"])):
                spec = {"command": ["true"], "launcher": "none", "after": {"jobs": [ref]}}
                answer = box.people[role].post(f"{PREFIX}/jobs?dry_run=true", json=spec)
                assert answer.status_code == (200 if may_read(role, project) else 422), (role, project, answer.text)


def test_everybody_reads_what_they_may_and_nothing_else(shared_box: Box) -> None:
    check_of_jobs(shared_box)
    check_numbers(shared_box)
    check_lists(shared_box)
    check_box(shared_box)
    check_the_rest(shared_box)
    check_changes(shared_box)
    check_dependencies(shared_box)
    check_reruns(shared_box)


def test_a_copied_placeholder_is_no_value(live_service: Live) -> None:
    spec = {"command": ["true"], "launcher": "none", "env": {"KEY": HIDDEN}}
    for path in ("/jobs", "/jobs?dry_run=true"):
        answer = live_service.client.post(PREFIX + path, json=spec)
        assert kind(answer) == (422, "invalid-request")
        assert "env.KEY" in answer.text


def check_caches(box: Box) -> None:
    """What was cached for one is not confirmed to another."""
    work = box.work["project"]
    for path in (f"/jobs/{work.ended['id']}", "/jobs?project=project", f"/groups/{work.sweep['id']}/trials"):
        tag = box.get("ada", path).headers["etag"]
        asked = {"If-None-Match": tag}
        assert box.people["ada"].get(PREFIX + path, headers=asked).status_code == 304
        assert box.people["mate"].get(PREFIX + path, headers=asked).status_code == 200
    asked = {"If-None-Match": box.get("ada", f"/jobs/{work.ended['id']}").headers["etag"]}
    answer = box.people["eve"].get(f"{PREFIX}/jobs/{work.ended['id']}", headers=asked)
    assert kind(answer) == (404, "not-found")


def check_the_end_of_a_right(box: Box) -> None:
    """A stream ends with the right to it."""
    work, attempt = box.work["project"], box.running["project"]
    attempt.write("first\n")
    path = f"{PREFIX}/jobs/{work.running['id']}/logs/stream"
    with box.people["mate"].stream("GET", path) as answer:
        events = EventSource(answer).iter_sse()
        assert "first" in next(events).data
        gone = box.live.client.delete(f"{PREFIX}/projects/project/members/mate")
        assert gone.status_code == 204
        attempt.write("second\n")
        assert list(events) == []
    assert kind(box.get("mate", f"/jobs/{work.running['id']}")) == (404, "not-found")


def check_stream(box: Box) -> None:
    for role, word in (("eve", "hold"), ("bot", "release")):
        told: list[str] = []
        readable = [project for project in PROJECTS if may_read(role, project)]
        with box.people[role].stream("GET", f"{PREFIX}/stream") as answer:
            lines = answer.iter_lines()
            assert next(lines) == ": ping"  # it listens
            for project in sorted(PROJECTS, key=readable.__contains__):  # what may be read comes last
                work = box.work[project]
                assert box.people["ada"].post(f"{PREFIX}/jobs/{work.waiting['id']}/{word}").is_success
            while not all(box.work[project].waiting["id"] in told for project in readable):
                told += re.findall(r'"id": "([^"]+)"', next(lines))
        hidden = {work.waiting["id"] for project, work in box.work.items() if project not in readable}
        assert not hidden & set(told), role


def check_live(box: Box) -> None:
    jobs = {project: work.running["id"] for project, work in box.work.items()}
    topics = ["jobs", *(f"job:{each}" for each in jobs.values()), *(f"metrics:{each}:" for each in jobs.values())]
    topics += [f"log:{each}:1:0:0" for each in jobs.values()]
    for role, readable in (("eve", "everyone"), ("bot", "project")):
        hidden = [project for project in PROJECTS if project != readable]
        told = ""
        with box.people[role].stream("GET", f"{PREFIX}/live", params={"topic": topics}) as answer:
            lines = answer.iter_lines()
            assert next(lines) == "event: open"
            for project in (*hidden, readable):
                box.running[project].write(f"log-of-{project}\n")
                box.running[project].report([1], **{f"loss-of-{project}": 0.5})
            while not all(f"{each}-of-{readable}" in told for each in ("log", "loss", "name")):
                told += next(lines)
        assert not re.search(f"of-({'|'.join(hidden)})", told), role
        assert box.work[readable].value not in told
        assert not {jobs[project] for project in hidden} & set(re.findall(r"job-\w+", told)), role


def test_streams_and_caches_tell_only_of_what_may_be_read(shared_box: Box) -> None:
    check_caches(shared_box)
    check_stream(shared_box)
    check_the_end_of_a_right(shared_box)
    check_live(shared_box)


def test_the_default_is_the_administrators(serve: Any) -> None:
    for visibility, seen in ((None, 404), ("private", 404), ("project", 404), ("everyone", 200)):
        changes = {} if visibility is None else {"visibility": visibility}
        with serve(**changes) as live, user(live, f"ada-{visibility}".lower(), "submit") as ada:
            shown = {each["name"]: each["visibility"] for each in live.client.get(f"{PREFIX}/projects").json()}
            assert shown["default"] == (visibility or "project")
            job = submitted(live.client, "default")
            assert ada.get(f"{PREFIX}/jobs/{job['id']}").status_code == seen
            # A job of one's own in a project makes nobody a member of it.
            submitted(ada, "default")
            assert ada.get(f"{PREFIX}/jobs/{job['id']}").status_code == seen
            path = f"{PREFIX}/projects/default"
            assert live.client.patch(path, json={"visibility": "everyone"}).json()["visibility"] == "everyone"
            assert ada.get(f"{PREFIX}/jobs/{job['id']}").status_code == 200
            assert live.client.patch(path, json={"visibility": None}).json()["visibility"] == (visibility or "project")
            assert ada.get(f"{PREFIX}/jobs/{job['id']}").status_code == seen


def test_members_are_added_removed_and_named(live_service: Live) -> None:
    with user(live_service, "ada", "submit") as ada:
        path = f"{PREFIX}/projects/default/members/ada"
        assert kind(ada.put(path)) == (403, "forbidden")
        for _ in range(2):
            assert live_service.client.put(path).status_code == 204
        assert live_service.client.get(f"{PREFIX}/projects").json()[0]["members"] == ["ada"]
        assert live_service.client.delete(path).status_code == 204
        assert kind(live_service.client.delete(path)) == (404, "not-found")
        assert kind(live_service.client.put(f"{PREFIX}/projects/none/members/ada")) == (404, "not-found")
        assert kind(live_service.client.put(f"{PREFIX}/projects/default/members/none")) == (404, "not-found")
        assert kind(live_service.client.patch(f"{PREFIX}/projects/none", json={})) == (404, "not-found")
        done = live_service.client.get(f"{PREFIX}/audit", params={"result": "done"}).json()["items"]
        told = [each["action"] for each in done]
        assert told.count("project.add-member") == told.count("project.remove-member") == 1
