"""Policy, quotas, usage and reservations, over real HTTP on both databases."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from sqlalchemy import insert, select, update

from service.accounting import usage
from service.accounting.gpu_time import DAY_US
from service.accounting.policy_settings import current_policy
from service.db.models import Account, Audit, Device, Job, Node, Reservation, User
from tests.support.live import Live
from tests.support.plane import plane, sha256
from tests.support.snapshots import snapshot
from tests.support.specs import spec
from tests.support.wait import until
from torchyard import wire
from torchyard.ids import now_us
from torchyard.quantities import format_size
from torchyard.spec.policy import Order, Policy

API = "/api/v1"


def refused(answer: httpx.Response, field: str, status: int = 422) -> str:
    """The message of a problem with one field."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    return str(error["message"])


def add_user(live: Live, name: str) -> str:
    """A user and a token of theirs."""
    assert live.client.post(f"{API}/users", json={"name": name}).status_code == 201
    made = live.client.post(f"{API}/tokens", json={"name": "t", "scopes": ["submit"], "user": name})
    return str(made.json()["secret"])


def actions(live: Live) -> list[str]:
    with live.context.db.read() as tx:
        return list(tx.scalars(select(Audit.action).order_by(Audit.id)))


def test_the_policy_is_shown_set_and_followed(live_service: Live) -> None:
    client = live_service.client
    shown = client.get(f"{API}/policy")
    assert Policy.model_validate(shown.json()) == Policy()
    assert client.get(f"{API}/policy", headers={"If-None-Match": shown.headers["etag"]}).status_code == 304
    made = client.put(f"{API}/policy", json={"order": "fifo", "half_life": "3d", "time_slice": None})
    assert made.status_code == 200, made.text
    assert (made.json()["half_life"], made.json()["time_slice"]) == (3 * 86400, None)
    with live_service.context.db.read() as tx:
        assert current_policy(tx) == Policy(order=Order.FIFO, half_life=3 * 86400, time_slice=None)
    client.put(f"{API}/policy", json={"backfill": False})
    assert client.get(f"{API}/policy").json()["order"] == "fair", "the whole policy is set"
    assert actions(live_service).count("policy.set") == 2


WRONG_POLICIES: list[tuple[dict[str, Any], str]] = [
    ({"half_life": 0}, "half_life"),
    ({"half_life": "a while"}, "half_life"),
    ({"order": "random"}, "order"),
    ({"order": "srtf"}, "order"),
    ({"halflife": "7d"}, "halflife"),
    ({"min_run": "9" * 400 + "d"}, "min_run"),
]


def test_wrong_policies_are_refused(live_service: Live) -> None:
    for body, field in WRONG_POLICIES:
        assert refused(live_service.client.put(f"{API}/policy", json=body), field)
    assert Policy.model_validate(live_service.client.get(f"{API}/policy").json()) == Policy()


def test_a_policy_is_tried_by_administrators_alone(live_service: Live) -> None:
    token = add_user(live_service, "ada")
    asked = {"policy": {"order": "fifo"}, "weeks": 1}
    answer = live_service.client.post(f"{API}/policy/what-if", json=asked, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 403
    assert "no job with GPUs" in refused(live_service.client.post(f"{API}/policy/what-if", json=asked), "weeks")
    asked["policy"] = {"order": "srtf"}
    assert refused(live_service.client.post(f"{API}/policy/what-if", json=asked), "order")
    assert "policy.set" not in actions(live_service)


def quota(client: httpx.Client, kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in client.get(f"{API}/quotas").json() if (each["kind"], each["name"]) == (kind, name)]
    return dict(found)


def test_quotas_are_set_and_taken_away(live_service: Live) -> None:
    client = live_service.client
    add_user(live_service, "ada")
    assert client.put(f"{API}/quotas/user/*", json={"max_gpus": 8, "weight": 2}).status_code == 200
    assert quota(client, "user", "ada")["effective"] == {
        "weight": 2,
        "max_gpus": 8,
        "max_gpu_hours": None,
        "max_queued": None,
        "max_storage": None,
    }
    made = client.put(f"{API}/quotas/user/ada", json={"max_gpus": 2, "max_gpu_hours": 100})
    nothing = {"max_queued": None, "max_storage": None}
    assert made.json()["own"] == {"weight": None, "max_gpus": 2, "max_gpu_hours": 100, **nothing}
    client.put(f"{API}/quotas/user/ada", json={"max_gpus": None})
    found = quota(client, "user", "ada")
    assert (found["own"]["max_gpus"], found["effective"]["max_gpus"], found["own"]["max_gpu_hours"]) == (None, 8, 100)
    assert client.put(f"{API}/quotas/project/default", json={}).status_code == 200
    assert actions(live_service).count("quota.set") == 4
    assert client.put(f"{API}/quotas/user/nobody", json={}).status_code == 404
    assert client.put(f"{API}/quotas/project/nowhere", json={}).status_code == 404


WRONG_QUOTAS: list[dict[str, Any]] = [
    {"weight": 0},
    {"weight": -1},
    {"max_gpus": -1},
    {"max_queued": 10**30},
    {"max_storage": "-1GiB"},
    {"max_storage": 2**63},
    {"gpus": 1},
]


def test_wrong_quotas_are_refused(live_service: Live) -> None:
    for values in WRONG_QUOTAS:
        refused(live_service.client.put(f"{API}/quotas/user/*", json=values), next(iter(values)))
    assert refused(live_service.client.put(f"{API}/quotas/team/x", json={}), "kind")
    with live_service.context.db.read() as tx:
        assert tx.execute(select(Account.__table__)).all() == []


def test_people_see_their_own_quotas_and_those_of_projects(live_service: Live) -> None:
    ada, grace = add_user(live_service, "ada"), add_user(live_service, "grace")
    with live_service.as_token(ada) as client:
        assert client.post(f"{API}/jobs", json=spec()).status_code == 201
        seen = {(each["kind"], each["name"]) for each in client.get(f"{API}/quotas").json()}
        assert seen == {("user", "*"), ("user", "ada"), ("project", "*"), ("project", "default")}
        standing = quota(client, "user", "ada")["standing"]
        assert (standing["queued"], standing["gpus"], standing["share"]) == (1, 0, 1)
        assert client.put(f"{API}/quotas/user/ada", json={"max_gpus": 99}).status_code == 403
    live_service.client.put(f"{API}/quotas/user/grace", json={"weight": 3})
    with live_service.as_token(grace) as client:
        assert quota(client, "user", "grace")["standing"]["share"] == 0.75


def test_no_more_jobs_wait_than_the_quotas_allow(live_service: Live) -> None:
    ada = add_user(live_service, "ada")
    live_service.client.put(f"{API}/quotas/user/ada", json={"max_queued": 3})
    sweep = spec(command=["train", "{lr}"], sweep={"lr": [1, 2]})
    with live_service.as_token(ada) as client:
        assert client.post(f"{API}/jobs", json=sweep).status_code == 201
        for dry in ("true", "false"):
            message = refused(client.post(f"{API}/jobs", json=sweep, params={"dry_run": dry}), "max_queued", 403)
            assert message.startswith("user ada has 2 of at most 3 waiting jobs, which leaves no room for 2 more: ")
            assert "yard quota set user ada --max-queued 4" in message
        assert client.post(f"{API}/jobs", json=spec()).status_code == 201
        assert len(client.get(f"{API}/jobs").json()["items"]) == 3
    live_service.client.put(f"{API}/quotas/user/ada", json={"max_queued": None})
    live_service.client.put(f"{API}/quotas/project/*", json={"max_queued": 3})
    with live_service.as_token(ada) as client:
        assert "project default has 3" in refused(client.post(f"{API}/jobs", json=spec()), "max_queued", 403)


def test_whoever_holds_all_the_storage_that_they_may_submits_nothing_more(live_service: Live) -> None:
    ada = add_user(live_service, "ada")
    client, job = live_service.client, spec(resources={"gpus": 0})
    with plane(live_service) as served:
        seeded, other = served.job(), served.job()
        with served.ctx.db.write() as tx:
            mine = select(User.id).where(User.name == "ada").scalar_subquery()
            tx.execute(update(Job).where(Job.id == seeded.job).values(user_id=mine))
        for held in (seeded, other):
            served.checkpoint(held, 7, {"state.pt": held.job.encode() * 100})
            served.log(held, 0, b"x" * 1000)
        written = wire.WrittenFile(path="x", size=50, sha256=sha256(b"y" * 50), root=wire.Root.OUTPUT)
        served.post(seeded, "outputs", wire.OutputReport(files=[], written=[written]))
    held_bytes = len(seeded.job) * 100 + 1000 + 50
    client.put(f"{API}/quotas/user/ada", json={"max_storage": held_bytes + 1})
    assert quota(client, "user", "ada")["standing"]["storage"] == held_bytes
    with live_service.as_token(ada) as own:
        assert own.post(f"{API}/jobs", json=job).status_code == 201
        client.put(f"{API}/quotas/user/ada", json={"max_storage": held_bytes})
        for dry in ("true", "false"):
            message = refused(own.post(f"{API}/jobs", json=job, params={"dry_run": dry}), "max_storage", 403)
            assert message.startswith(
                f"the jobs of user ada hold {format_size(held_bytes)} in the store, and may hold "
            )
            assert "`yard quota set user ada --max-storage SIZE`" in message
        client.put(f"{API}/quotas/user/ada", json={"max_storage": None})
        client.put(f"{API}/quotas/project/default", json={"max_storage": "1KiB"})
        assert "project default hold" in refused(own.post(f"{API}/jobs", json=job), "max_storage", 403)
        client.put(f"{API}/quotas/project/default", json={"max_storage": "1GiB"})
        assert own.post(f"{API}/jobs", json=job).status_code == 201


def test_code_counts_once_for_each_who_has_jobs_on_it(live_service: Live) -> None:
    ada, grace = add_user(live_service, "ada"), add_user(live_service, "grace")
    client = live_service.client
    for secret, jobs in ((ada, 2), (grace, 1)):
        with live_service.as_token(secret) as own:
            code = snapshot(own, b"print(1)" * 100)
            for _ in range(jobs):
                assert own.post(f"{API}/jobs", json=spec(code=code)).status_code == 201
            snapshot(own, b"no job is on it")
    for name in ("ada", "grace"):
        standing = quota(client, "user", name)["standing"]
        assert (standing["storage"], standing["code"]) == (800, 800)
    assert quota(client, "project", "default")["standing"]["code"] == 1600
    client.put(f"{API}/quotas/user/ada", json={"max_storage": 800})
    with live_service.as_token(ada) as own:
        message = refused(own.post(f"{API}/jobs", json=spec()), "max_storage", 403)
    assert "`yard discard --code`" in message


def test_submissions_that_overlap_do_not_pass_a_quota_together(live_service: Live) -> None:
    live_service.client.put(f"{API}/quotas/user/*", json={"max_queued": 2})
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: live_service.client.post(f"{API}/jobs", json=spec()), range(8)))
    assert sorted(answer.status_code for answer in answers) == [201] * 2 + [403] * 6


def add_usage(live: Live, *, day: int, kind: str, hours: float, user: str = "ada", project: str = "default") -> None:
    with live.context.db.write() as tx:
        user_id = tx.scalar(select(User.id).where(User.name == user))
        values = {"day": day, "user_id": user_id, "project": project, "kind": kind}
        usage.add(tx, [{**values, "gpu_us": round(hours * 3.6e9), "stoppable_us": 0}])


def test_usage_by_user_project_and_day(live_service: Live) -> None:
    add_user(live_service, "ada")
    add_user(live_service, "grace")
    today = now_us() // DAY_US
    add_usage(live_service, day=today, kind="useful", hours=10)
    add_usage(live_service, day=today, kind="idle", hours=2.5)
    add_usage(live_service, day=today - 1, kind="lost", hours=1, user="grace")
    add_usage(live_service, day=today - 30, kind="failed", hours=7, user="grace")
    get = live_service.client.get
    report = get(f"{API}/usage").json()
    assert report["by"] == "user"
    assert [(row["of"], row["useful"], row["idle"], row["total"]) for row in report["rows"]] == [
        ("ada", 10, 2.5, 12.5),
        ("grace", 0, 0, 1),
    ]
    assert report["total"] == {"useful": 10, "idle": 2.5, "failed": 0, "lost": 1, "total": 13.5, "stoppable": 0}
    month = (datetime.now(UTC).date() - timedelta(days=40)).isoformat()
    days = get(f"{API}/usage", params={"from": month, "by": "day"}).json()["rows"]
    assert [row["total"] for row in days] == [7, 1, 12.5]
    table = get(f"{API}/usage", params={"from": month, "by": "project", "format": "csv"})
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert table.text == (
        "project,useful,idle,failed,lost,total,stoppable\ndefault,10.0000,2.5000,7.0000,1.0000,20.5000,0.0000\n"
    )
    assert refused(get(f"{API}/usage", params={"from": "2026-02-02", "to": "2026-02-01"}), "from")
    assert refused(get(f"{API}/usage", params={"from": "yesterday"}), "from")
    assert get(f"{API}/usage", params={"to": "0001-01-01"}).json()["rows"] == []
    assert get(f"{API}/usage", params={"from": "0001-01-01", "to": "9999-12-31"}).status_code == 200


def test_the_digest_of_a_week(live_service: Live) -> None:
    add_user(live_service, "ada")
    monday = datetime.fromisocalendar(2026, 30, 1).replace(tzinfo=UTC)
    add_usage(live_service, day=round(monday.timestamp()) // 86400 + 6, kind="useful", hours=10)
    add_usage(live_service, day=round(monday.timestamp()) // 86400 + 7, kind="useful", hours=10)
    digest = live_service.client.get(f"{API}/usage/digest", params={"week": "2026-W30"}).json()
    assert (digest["since"], digest["until"]) == ("2026-07-20", "2026-07-26")
    assert [(row["of"], row["useful"]) for row in digest["users"]] == [("ada", 10)]
    assert (digest["wastes"], digest["started"], digest["mean_wait_s"], digest["held"]) == ([], 0, None, None)
    assert live_service.client.get(f"{API}/usage/digest").json()["week"] < f"{datetime.now(UTC):%G-W%V}"
    for wrong in ("2026-30", "2026-W60", "W30", "9" * 50):
        answer = live_service.client.get(f"{API}/usage/digest", params={"week": wrong})
        assert answer.json()["errors"][0]["field"] == "week", wrong


def add_node(live: Live, name: str, gpus: int, kind: str = "gpu") -> None:
    identity = {"node_id": name, "home_id": "home", "boot_id": "boot", "pid_namespace": "1", "hostname": name}
    facts = {"version": "1", "runs_as_root": False, "cpus": 2, "memory": 2**30, "registered_us": 1}
    with live.context.db.write() as tx:
        tx.execute(insert(Node).values(name=name, **identity, **facts))
        for index in range(gpus):
            device = {"uuid": f"{name}-{index}", "index": index, "kind": kind, "name": "A100", "memory": 2**36}
            tx.execute(insert(Device).values(node=name, **device))


def at(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


def reserve(live: Live, **values: Any) -> httpx.Response:
    fields = {"name": "demo", "projects": ["default"], "gpus": 2, "starts_at": at(1), "ends_at": at(3)} | values
    return live.client.post(f"{API}/reservations", json={k: v for k, v in fields.items() if v is not None})


def test_reservations_are_made_listed_and_cancelled(live_service: Live) -> None:
    add_node(live_service, "box", 4)
    add_user(live_service, "ada")
    made = reserve(live_service, users=["ada", "ada"])
    assert made.status_code == 201, made.text
    assert (made.json()["users"], made.json()["state"]) == (["ada"], "planned")
    now = reserve(live_service, name="now", starts_at=None, ends_at=at(0.5), gpus=None, nodes=["box"])
    assert now.json()["state"] == "active"
    listed = live_service.client.get(f"{API}/reservations").json()
    assert [each["name"] for each in listed] == ["now", "demo"]
    path = f"{API}/reservations/{made.json()['id']}"
    assert live_service.client.delete(path).status_code == 204
    assert live_service.client.delete(path).status_code == 404
    assert [each["name"] for each in live_service.client.get(f"{API}/reservations").json()] == ["now"]
    every = live_service.client.get(f"{API}/reservations", params={"all": "true"}).json()
    assert [each["state"] for each in every] == ["active", "cancelled"]
    assert {"reservation.create", "reservation.cancel"} <= set(actions(live_service))


def test_a_reservation_is_changed_in_its_place(live_service: Live) -> None:
    add_node(live_service, "box", 4)
    made = reserve(live_service, gpus=4).json()
    begun = reserve(live_service, name="now", starts_at=None, ends_at=at(0.5), gpus=1).json()
    client, path = live_service.client, f"{API}/reservations/{made['id']}"
    asked = {"name": "longer", "projects": ["default"], "gpus": 4, "starts_at": at(1), "ends_at": at(5)}
    changed = client.put(path, json=asked).raise_for_status().json()
    assert (changed["id"], changed["name"], changed["created_at"]) == (made["id"], "longer", made["created_at"])
    assert "3 of 4 GPUs are free" in refused(client.put(path, json=asked | {"starts_at": at(0.2)}), "gpus")
    refused(client.put(path, json=asked | {"starts_at": at(-1)}), "starts_at")
    # One that has begun keeps its start.
    longer = {"name": "now", "projects": ["default"], "gpus": 1, "ends_at": at(0.7)}
    kept = client.put(f"{API}/reservations/{begun['id']}", json=longer | {"starts_at": begun["starts_at"]})
    assert kept.raise_for_status().json()["starts_at"] == begun["starts_at"]
    assert client.put(f"{API}/reservations/{begun['id']}", json=longer).json()["starts_at"] == begun["starts_at"]
    client.delete(path)
    assert client.put(path, json=asked).status_code == 404
    assert "reservation.change" in actions(live_service)


def test_no_more_is_reserved_than_there_is(live_service: Live) -> None:
    add_node(live_service, "box", 4)
    assert reserve(live_service).status_code == 201
    assert "2 of 4 GPUs are free" in refused(reserve(live_service, gpus=3, starts_at=at(2), ends_at=at(9)), "gpus")
    assert "2 of 4 GPUs are free" in refused(reserve(live_service, gpus=None, nodes=["box"]), "nodes")
    assert reserve(live_service, gpus=2).status_code == 201
    assert reserve(live_service, gpus=4, starts_at=at(3), ends_at=at(4)).status_code == 201


def test_gpus_are_reserved_of_gpus_and_of_cpu_slots_only_where_there_are_none(live_service: Live) -> None:
    add_node(live_service, "helper", 8, "cpu")
    assert "8 of 8 CPU slots are free" in refused(reserve(live_service, gpus=9), "gpus")
    add_node(live_service, "box", 4)
    assert "4 of 4 GPUs are free" in refused(reserve(live_service, gpus=5), "gpus")
    assert reserve(live_service, gpus=4).status_code == 201
    assert reserve(live_service, gpus=None, nodes=["helper"]).status_code == 201


def test_a_node_drains_for_its_maintenance(live_service: Live) -> None:
    add_node(live_service, "box", 4)

    def draining() -> bool:
        with live_service.context.db.read() as tx:
            return bool(tx.scalar(select(Node.draining).where(Node.name == "box")))

    made = reserve(live_service, maintenance=True, projects=None, gpus=None, nodes=["box"], starts_at=None)
    assert made.status_code == 201, made.text
    until(draining)
    assert live_service.client.get(f"{API}/nodes").json()["items"][0]["maintenance"] == made.json()["id"]
    resumed = live_service.client.post(f"{API}/nodes/box/resume")
    assert (resumed.status_code, made.json()["id"] in resumed.json()["detail"]) == (409, True)
    assert live_service.client.delete(f"{API}/reservations/{made.json()['id']}").status_code == 204
    until(lambda: not draining())
    assert live_service.client.post(f"{API}/nodes/box/drain").status_code == 200
    assert live_service.client.post(f"{API}/nodes/box/resume").status_code == 200


WRONG_RESERVATIONS: list[tuple[dict[str, Any], str]] = [
    ({"starts_at": at(-2)}, "starts_at"),
    ({"starts_at": at(-3), "ends_at": at(-2)}, "starts_at"),
    ({"starts_at": None, "ends_at": at(-0.001)}, "ends_at"),
    ({"ends_at": at(0.5)}, "ends_at"),
    ({"ends_at": "2099-01-01T00:00:00"}, "ends_at"),
    ({"ends_at": None}, "ends_at"),
    ({"projects": None}, "users"),
    ({"maintenance": True}, "users"),
    ({"maintenance": True, "projects": None}, "nodes"),
    ({"gpus": None}, "gpus"),
    ({"nodes": ["box"]}, "gpus"),
    ({"gpus": 0}, "gpus"),
    ({"gpus": None, "nodes": ["nowhere"]}, "nodes"),
    ({"projects": ["nowhere"]}, "projects"),
    ({"name": "a\0b"}, "name"),
    ({"what": 1}, "what"),
]


def test_wrong_reservations_are_refused(live_service: Live) -> None:
    add_node(live_service, "box", 4)
    for values, field in WRONG_RESERVATIONS:
        assert refused(reserve(live_service, **values), field)
    with live_service.context.db.read() as tx:
        assert tx.execute(select(Reservation.__table__)).all() == []
