"""``/jobs`` over real HTTP, on both databases."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from sqlalchemy import event, func, insert, select, update

from service import ingest, lifecycle
from service.attempts import memory
from service.db.models import Attempt, Checkpoint, Event, IdempotencyKey, Job, MetricSeries, Node, Tag
from service.jobs import facets, find, text_search
from service.scheduler.model.nodes import Placement
from tests.support.box import add_node
from tests.support.live import Live
from tests.support.problems import kind
from tests.support.specs import spec
from tests.support.wait import until
from torchyard.ids import new_id
from torchyard.wire import MetricBatch, MetricRecord, Result, ResultKind

JOBS = "/api/v1/jobs"


def submit(live: Live, **changes: Any) -> dict[str, Any]:
    answer = live.client.post(JOBS, json=spec(**changes))
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def problem(answer: httpx.Response) -> tuple[int, str, list[str]]:
    body = answer.json()
    assert body["status"] == answer.status_code
    return *kind(answer), [error["field"] for error in body["errors"]]


def stored(live: Live) -> int:
    with live.context.db.read() as tx:
        return tx.scalar(select(func.count()).select_from(Job)) or 0


def run(live: Live, job_id: str) -> str:
    """Brings a queued job to running on a node of its own, which the scheduler only ever sees draining."""
    node, now = f"box-{job_id[-6:]}", live.context.now_us()
    uuids = add_node(live.context.db, node, devices=1, draining=True, last_seen_us=now)
    with live.context.db.write() as tx:
        tx.execute(update(Node).where(Node.name == node).values(draining=False))
        attempt = lifecycle.assign(tx, job_id, [Placement(node=node, uuids=tuple(uuids))], now)
        tx.execute(update(Node).where(Node.name == node).values(draining=True))
        lifecycle.claim(tx, attempt, node, "nonce", now)
        lifecycle.mark_running(tx, attempt, now)
    live.context.hub.notify(f"job:{job_id}")
    return attempt


def end(live: Live, attempt: str, job_id: str, code: int = 0) -> None:
    with live.context.db.write() as tx:
        now = live.context.now_us()
        lifecycle.finish(tx, attempt, Result(kind=ResultKind.EXITED, exit_code=code, started_us=now, ended_us=now), now)
    live.context.hub.notify(f"job:{job_id}")


def test_a_job_is_submitted_and_shown_by_id_and_number(live_service: Live) -> None:
    answer = live_service.client.post(JOBS, json=spec(name="first", tags=["a", "b"], time_limit="4h"))
    job = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{JOBS}/{job['id']}"
    assert (job["number"], job["state"], job["version"], job["attempt"]) == (1, "queued", 1, 0)
    assert job["spec"]["time_limit"] == 4 * 3600
    by_id = live_service.client.get(answer.headers["location"])
    assert by_id.json() == job == live_service.client.get(f"{JOBS}/1").json()
    assert by_id.headers["etag"] == answer.headers["etag"]
    (event,) = live_service.client.get(f"{JOBS}/1/events").json()["items"]
    assert (event["seq"], event["kind"], event["state"]) == (1, "submitted", "queued")
    assert "no node has registered yet" in event["message"]


def test_jobs_are_listed_by_number_and_id(live_service: Live) -> None:
    first, second, _ = submit(live_service), submit(live_service), submit(live_service)
    page = live_service.client.get(JOBS, params={"refs": f"{first['number']}, {second['id']},4711"}).json()
    assert [job["id"] for job in page["items"]] == [second["id"], first["id"]]
    found = live_service.client.get(JOBS, params={"refs": str(first["number"]), "q": "no such name"}).json()
    assert found["items"] == []


def test_numbers_count_on(live_service: Live) -> None:
    assert [submit(live_service)["number"] for _ in range(3)] == [1, 2, 3]


def test_yaml_is_read_too(live_service: Live) -> None:
    text = "name: digits\ncommand: [train.py, --lr, '0.1']\nresources: {gpus: 2, memory: 1GiB}\n"
    answer = live_service.client.post(JOBS, content=text, headers={"Content-Type": "application/yaml"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["spec"]["resources"]["memory"] == 2**30


WRONG_SPECS: list[tuple[Any, list[str], str]] = [
    (spec(resource={"gpus": 1}), ["resource"], "did you mean resources?"),
    (spec(resources={"gpu": 1}), ["resources.gpu"], "did you mean gpus?"),
    (spec(checkpoint={"keep_best": {"metrc": "x", "metric": "y"}}), ["checkpoint.keep_best.metrc"], "metric?"),
    (spec(resources={"gpus": -1}), ["resources.gpus"], "-1 is too small: the least is 0"),
    (spec(time_limit="4 fortnights"), ["time_limit"], "write seconds, or 90s"),
    (spec(env={"RANK": "1"}), ["env"], "leave it out"),
    ({"name": "x"}, ["(body)"], "either a recipe"),
    (spec(name="../../etc/passwd"), ["name"], "is not a name: take letters, digits"),
    (spec(link=["../data"]), ["link"], "without '..'"),
    (spec(link=["data"]), ["link_root"], "link needs it: an absolute folder on the node"),
    (spec(link=["data"], link_root="project"), ["link_root"], "an absolute folder"),
    (spec(link=["data"], live="/srv"), ["link"], "leave link out"),
    (spec(live="relative"), ["(body)"], "absolute"),
    (spec(code="snap-../../x"), ["(body)"], "id of an uploaded snapshot"),
    (spec(code="snap-" + "0" * 26), ["code"], "upload it"),
    (spec(project="nowhere", priority="wrong"), ["priority"], "'low'"),
    (spec(command=["a\0b"]), ["command.0"], "NUL"),
    (spec(tags=["\ud800"]), ["tags.0"], "surrogate"),
    ([1], ["(body)"], "a mapping of fields"),
]


def test_a_wrong_spec_names_the_field_and_the_mend(live_service: Live) -> None:
    for body, fields, words in WRONG_SPECS:
        answer = live_service.client.post(JOBS, content=json.dumps(body), headers={"Content-Type": "application/json"})
        assert problem(answer) == (422, "invalid-request", fields), body
        assert words in answer.json()["errors"][0]["message"]
    assert stored(live_service) == 0


UNREADABLE: list[tuple[str, Any, str]] = [
    ("application/yaml", "name: a\ncommand: [x", "line 3, column 1: did not find expected"),
    ("application/yaml", "name: a\n\tcommand: x", "line 2, column 1"),
    ("application/yaml", "a: &x [1]\nb: *x", "line 2, column 4: aliases"),
    ("application/yaml", "[" * 500_000, "nested too deeply"),
    ("application/yaml", "a: !!python/object/apply:os.system [true]", "line 1, column 4: tags"),
    ("application/json", '{"name": "a",}', "line 1, column 1"),
    ("application/json", "[" * 500_000, "nested too deeply"),
    ("application/json", '{"name": NaN}', "NaN is not JSON"),
    ("application/json", b"\xff", "not UTF-8 at byte 0"),
]


def test_what_does_not_parse_is_named_by_line_and_column(live_service: Live) -> None:
    for content_type, text, words in UNREADABLE:
        answer = live_service.client.post(JOBS, content=text, headers={"Content-Type": content_type})
        assert problem(answer) == (422, "invalid-request", ["(body)"]), text[:50]
        assert words in answer.json()["detail"]
    assert stored(live_service) == 0


def test_other_media_types_are_refused(live_service: Live) -> None:
    answer = live_service.client.post(JOBS, content="<job/>", headers={"Content-Type": "text/xml"})
    assert problem(answer) == (415, "unsupported-media-type", [])


def test_ten_megabytes_are_refused(live_service: Live) -> None:
    answer = live_service.client.post(JOBS, json=spec(env={"A": "x" * 10 * 2**20}))
    assert problem(answer) == (413, "payload-too-large", [])
    chunks = (b"x" * 2**16 for _ in range(160))
    chunked = live_service.client.post(JOBS, content=chunks, headers={"Content-Type": "application/json"})
    assert problem(chunked) == (413, "payload-too-large", [])
    assert stored(live_service) == 0


def test_what_never_fits_is_refused_with_what_there_is(live_service: Live) -> None:
    add_node(live_service.context.db, "box", devices=2)
    answer = live_service.client.post(JOBS, json=spec(resources={"gpus": 3}))
    assert problem(answer) == (422, "never-fits", ["resources.gpus"])
    assert "node box has 2 GPUs, the job needs 3" in answer.json()["detail"]
    for field, value in (("gpu_memory_min", "200GiB"), ("cpus", 65), ("memory", "1TiB")):
        other = live_service.client.post(JOBS, json=spec(resources={"gpus": 1, field: value}))
        assert problem(other) == (422, "never-fits", [f"resources.{field}"])
    assert stored(live_service) == 0


def test_a_dry_run_checks_and_stores_nothing(live_service: Live) -> None:
    answer = live_service.client.post(JOBS, params={"dry_run": "true"}, json=spec(project="vision"))
    assert answer.status_code == 200
    assert answer.json()["spec"]["name"] == "nothing"
    assert "project vision is new" in answer.json()["note"]
    wrong = live_service.client.post(JOBS, params={"dry_run": "true"}, json=spec(nam="x"))
    assert problem(wrong) == (422, "invalid-request", ["nam"])
    assert stored(live_service) == 0


def test_the_same_key_makes_one_job(live_service: Live) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = live_service.client.post(JOBS, json=spec(), headers=headers)
    again = live_service.client.post(JOBS, json=spec(), headers=headers)
    assert first.json() == again.json()
    assert "idempotency-replayed" not in first.headers
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    other = live_service.client.post(JOBS, json=spec(name="other"), headers=headers)
    assert problem(other) == (422, "idempotency-mismatch", [])
    assert stored(live_service) == 1


def test_the_same_key_at_the_same_time_makes_one_job(live_service: Live) -> None:
    def post(_: int) -> str:
        answer = live_service.client.post(JOBS, json=spec(), headers={"Idempotency-Key": "race"})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(post, range(16)))) == 1
    assert stored(live_service) == 1


def test_a_key_is_forgotten_after_seven_days(live_service: Live) -> None:
    headers = {"Idempotency-Key": "old"}
    first = live_service.client.post(JOBS, json=spec(), headers=headers)
    with live_service.context.db.write() as tx:
        tx.execute(update(IdempotencyKey).values(created_us=1))
    assert live_service.client.post(JOBS, json=spec(name="other"), headers=headers).json()["id"] != first.json()["id"]


def test_numbers_are_distinct_under_pressure(live_service: Live) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: submit(live_service)["number"], range(40)))
    assert len(set(numbers)) == 40


def test_an_unchanged_job_answers_304(live_service: Live) -> None:
    job = submit(live_service)
    path = f"{JOBS}/{job['id']}"
    tag = live_service.client.get(path).headers["etag"]
    same = live_service.client.get(path, headers={"If-None-Match": tag})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    attempt = run(live_service, job["id"])
    assert live_service.client.get(path, headers={"If-None-Match": tag}).status_code == 200
    tag = live_service.client.get(path).headers["etag"]
    report(live_service, attempt, 0, 1, loss=0.5)
    changed = live_service.client.get(path, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.json()["latest"] == {"loss": 0.5}


def report(live: Live, attempt: str, rank: int, line: int, *, time_us: int = 10**15, **values: float) -> None:
    """Line `line` of a rank's metrics file, of ten bytes; always of step 5."""
    batch = MetricBatch(
        node_rank=0,
        stream=f"rank-{rank}",
        rank=rank,
        offset=10 * line - 10,
        end=10 * line,
        records=[(line, MetricRecord(step=5, time_us=time_us, values=dict(values)))],
    )
    ctx = live.context
    ingest.record(ctx.db, ctx.memory, memory.facts(ctx.db, ctx.memory, attempt), batch)


def test_points_that_come_late_are_a_change_too(live_service: Live) -> None:
    job = submit(live_service)
    attempt = run(live_service, job["id"])
    report(live_service, attempt, 0, 1, loss=0.5)
    report(live_service, attempt, 1, 1, time_us=2 * 10**15, loss=0.7)  # a rank whose clock is ahead
    shown = [live_service.client.get(path) for path in (f"{JOBS}/{job['id']}", JOBS)]
    report(live_service, attempt, 0, 2, time_us=10**15 + 1, loss=0.25)
    for seen in shown:
        again = live_service.client.get(seen.request.url.path, headers={"If-None-Match": seen.headers["etag"]})
        assert again.status_code == 200
        assert '"latest":{"loss":0.25}' in again.text


def test_a_page_that_becomes_the_last_is_a_change(live_service: Live) -> None:
    jobs = [submit(live_service) for _ in range(2)]
    query = {"limit": "1", "state": "queued"}
    page = live_service.client.get(JOBS, params=query)
    assert page.json()["next"]
    live_service.client.post(f"{JOBS}/{jobs[0]['id']}/cancel")
    again = live_service.client.get(JOBS, params=query, headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.json()["next"]) == (200, None)


def add_series(live: Live, job_id: str, attempt_id: str, name: str, value: float, **values: Any) -> None:
    row = {"stream": "s", "rank": 0, "attempt": 1, "last_step": 1, "last_time_us": live.context.now_us(), **values}
    with live.context.db.write() as tx:
        tx.execute(
            insert(MetricSeries).values(job_id=job_id, attempt_id=attempt_id, name=name, last_value=value, **row)
        )


def test_a_running_job_shows_devices_progress_and_values(live_service: Live) -> None:
    job = submit(live_service)
    attempt = run(live_service, job["id"])
    with live_service.context.db.write() as tx:
        started = tx.scalar(select(Attempt.started_us).where(Attempt.id == attempt)) or 0
        tx.execute(update(Job).values(step=25, total_steps=100))
    add_series(live_service, job["id"], attempt, "loss", 0.5, last_time_us=started + 10_000_000)
    add_series(live_service, job["id"], attempt, "loss", 9.0, stream="t", rank=1)
    add_series(live_service, job["id"], attempt, "grad", None, last_special=1)  # type: ignore[arg-type]
    shown = live_service.client.get(f"{JOBS}/{job['id']}").json()
    assert shown["state"] == "running"
    assert [device["index"] for device in shown["devices"]] == [0]
    assert shown["latest"] == {"loss": 0.5, "grad": "nan"}
    assert shown["progress"]["step"] == 25
    assert 0 < shown["progress"]["eta_s"] <= 30
    (shown_attempt,) = live_service.client.get(f"{JOBS}/{job['id']}/attempts").json()
    assert (shown_attempt["number"], shown_attempt["state"], shown_attempt["error"]) == (1, "running", None)


def test_a_failed_attempt_says_why(live_service: Live) -> None:
    job = submit(live_service)
    end(live_service, run(live_service, job["id"]), job["id"], code=3)
    shown = live_service.client.get(f"{JOBS}/{job['id']}").json()
    assert (shown["state"], shown["error"]["exit_code"], shown["devices"]) == ("failed", 3, [])
    (attempt,) = live_service.client.get(f"{JOBS}/{job['id']}/attempts").json()
    assert (attempt["exit_code"], attempt["error"]["cause"], len(attempt["devices"])) == (3, "exit", 1)


def test_a_long_poll_answers_at_the_end(live_service: Live) -> None:
    job = submit(live_service)
    attempt = run(live_service, job["id"])
    with ThreadPoolExecutor(1) as pool:
        poll = pool.submit(live_service.client.get, f"{JOBS}/{job['number']}", params={"wait": 30})
        until(lambda: live_service.context.hub._listeners.get(f"job:{job['id']}"))
        assert not poll.done()
        end(live_service, attempt, job["id"])
        assert poll.result(60).json()["state"] == "succeeded"


def test_a_long_poll_answers_in_time_without_an_end(live_service: Live) -> None:
    job = submit(live_service)
    assert live_service.client.get(f"{JOBS}/{job['id']}", params={"wait": 0.2}).json()["state"] == "queued"
    assert live_service.client.get(f"{JOBS}/99", params={"wait": 5}).status_code == 404


def test_the_end_of_the_service_ends_long_polls(serve: Callable[..., Any]) -> None:
    with ThreadPoolExecutor(1) as pool:
        with serve() as live:
            job = submit(live)
            poll = pool.submit(httpx.get, f"{live.url}{JOBS}/1?wait=60", headers=dict(live.client.headers), timeout=60)
            until(lambda: live.context.hub._listeners.get(f"job:{job['id']}"))
            stopped = time.monotonic()
        assert poll.result(60).json()["state"] == "queued"
        assert time.monotonic() - stopped < 40


def test_lists_filter_and_page(live_service: Live) -> None:
    for n in range(5):
        submit(live_service, name=f"net-{n}", tags=["even" if n % 2 == 0 else "odd"])
    submit(live_service, name="other", project="vision")
    live_service.client.post(f"{JOBS}/2/cancel")

    def names(**params: Any) -> list[str]:
        return [job["name"] for job in live_service.client.get(JOBS, params=params).json()["items"]]

    assert names() == ["other", "net-4", "net-3", "net-2", "net-1", "net-0"]
    assert names(tag="even") == ["net-4", "net-2", "net-0"]
    assert len(names(tag=["even", "odd"])) == 5
    assert names(state="cancelled") == ["net-1"]
    assert names(project="vision") == ["other"]
    assert names(q="NET-3") == ["net-3"]
    assert names(q="4") == ["net-4", "net-3"]
    assert names(q="%") == []
    assert names(user="nobody") == []
    first = live_service.client.get(JOBS, params={"limit": 4}).json()
    rest = live_service.client.get(JOBS, params={"limit": 4, "cursor": first["next"]}).json()
    assert [job["number"] for job in first["items"] + rest["items"]] == [6, 5, 4, 3, 2, 1]
    assert rest["next"] is None


def test_a_page_of_two_thousand_jobs_takes_few_queries(live_service: Live) -> None:
    job = submit(live_service)
    with live_service.context.db.write() as tx:
        row = tx.execute(select(Job.__table__).where(Job.id == job["id"])).one()._asdict()
        tx.execute(insert(Job), [{**row, "id": f"job-{n:05}", "number": n, "name": f"n{n}"} for n in range(2, 2_001)])
    asked: Counter[str] = Counter()  # by thread: the scheduler reads the jobs at the same time
    listener = lambda *args: asked.update([threading.current_thread().name] if "jobs" in args[2] else [])  # noqa: E731
    event.listen(live_service.context.db.engine, "before_cursor_execute", listener)
    page = live_service.client.get(JOBS, params={"limit": 200, "cursor": "1000"})
    assert [page.json()["items"][n]["number"] for n in (0, -1)] == [999, 800]
    requests = sum(count for thread, count in asked.items() if thread.startswith("AnyIO"))
    assert 0 < requests <= 8, asked
    assert (
        live_service.client.get(
            JOBS, params={"limit": 200, "cursor": "1000"}, headers={"If-None-Match": page.headers["etag"]}
        ).status_code
        == 304
    )


def test_wrong_questions_are_problems(live_service: Live) -> None:
    for params in ({"cursor": "x"}, {"limit": 0}, {"limit": 501}, {"state": "done"}, {"q": "a\0"}):
        status, kind, _ = problem(live_service.client.get(JOBS, params=params))
        assert (status, kind) == (422, "invalid-request"), params


def test_unknown_jobs_are_not_found(live_service: Live) -> None:
    for ref in ("nothing", "0", "9" * 30, "..%2F..%2Fetc%2Fpasswd", "job-%00", "é"):
        status, kind, _ = problem(live_service.client.get(f"{JOBS}/{ref}"))
        assert (status, kind) in {(404, "not-found"), (422, "invalid-request")}, ref


def test_a_change_needs_the_version_it_is_based_on(live_service: Live) -> None:
    job = submit(live_service, tags=["a"])
    path = f"{JOBS}/{job['id']}"
    tag = live_service.client.get(path).headers["etag"]
    change = {"priority": "high", "tags": ["b", "c"], "name": "new", "time_limit": "2h"}
    assert problem(live_service.client.patch(path, json=change))[:2] == (428, "precondition-required")
    wrong = live_service.client.patch(path, json=change, headers={"If-Match": '"99.abc"'})
    assert problem(wrong)[:2] == (412, "precondition-failed")
    changed = live_service.client.patch(path, json=change, headers={"If-Match": tag})
    assert changed.status_code == 200, changed.text
    shown = changed.json()
    assert (shown["priority"], shown["tags"], shown["name"]) == ("high", ["b", "c"], "new")
    assert shown["spec"]["time_limit"] == 7200
    assert changed.headers["etag"] == live_service.client.get(path).headers["etag"]
    assert problem(live_service.client.patch(path, json=change, headers={"If-Match": tag}))[0] == 412
    with live_service.context.db.read() as tx:
        assert set(tx.scalars(select(Tag.tag))) == {"b", "c"}
        assert tx.scalars(select(Event.kind).order_by(Event.seq)).all() == ["submitted", "changed"]


WRONG_CHANGES: list[tuple[dict[str, Any], list[str]]] = [
    ({"command": ["x"]}, ["command"]),
    ({"time_limit": "soon"}, ["time_limit"]),
    ({"tags": None}, ["tags"]),
    ({"name": "a/b"}, ["name"]),
    ({"tags": ["a" * 200]}, ["tags.0"]),
]


def test_wrong_changes_are_refused(live_service: Live) -> None:
    job = submit(live_service)
    for change, fields in WRONG_CHANGES:
        answer = live_service.client.patch(f"{JOBS}/{job['id']}", json=change, headers={"If-Match": "*"})
        assert problem(answer) == (422, "invalid-request", fields), change


def test_a_running_job_keeps_its_time_limit(live_service: Live) -> None:
    job = submit(live_service)
    run(live_service, job["id"])
    path, anyway = f"{JOBS}/{job['id']}", {"If-Match": "*"}
    refused = live_service.client.patch(path, json={"time_limit": 60}, headers=anyway)
    assert problem(refused) == (409, "not-acceptable-state", ["time_limit"])
    assert live_service.client.patch(path, json={"tags": ["x"]}, headers=anyway).json()["tags"] == ["x"]


def test_cancel_hold_release(live_service: Live) -> None:
    job = submit(live_service)
    path = f"{JOBS}/{job['id']}"
    assert live_service.client.post(f"{path}/hold").json()["held"] is True
    assert live_service.client.post(f"{path}/release").json()["held"] is False
    assert live_service.client.post(f"{path}/cancel").json()["state"] == "cancelled"
    assert live_service.client.post(f"{path}/cancel").status_code == 200
    assert problem(live_service.client.post(f"{path}/hold"))[:2] == (409, "not-acceptable-state")
    assert problem(live_service.client.post(f"{path}/checkpoint"))[:2] == (409, "not-acceptable-state")
    kinds = [event["kind"] for event in live_service.client.get(f"{path}/events").json()["items"]]
    assert kinds == ["submitted", "held", "released", "cancelled"]


def test_a_running_job_stops_and_its_node_is_nudged(live_service: Live) -> None:
    job = submit(live_service)
    run(live_service, job["id"])
    path = f"{JOBS}/{job['id']}"
    assert live_service.client.post(f"{path}/checkpoint").status_code == 202
    with live_service.context.db.read() as tx:
        assert tx.scalar(select(Attempt.checkpoint_serial)) == 1
    stopped = live_service.client.post(f"{path}/cancel").json()
    assert (stopped["state"], stopped["stop"]) == ("stopping", "cancel")
    until(lambda: live_service.context.dispatcher.failed)  # there is no Redis here, but it was tried


def test_events_page(live_service: Live) -> None:
    job = submit(live_service)
    path = f"{JOBS}/{job['id']}"
    live_service.client.post(f"{path}/hold")
    live_service.client.post(f"{path}/release")
    first = live_service.client.get(f"{path}/events", params={"limit": 2})
    assert [event["seq"] for event in first.json()["items"]] == [1, 2]
    rest = live_service.client.get(f"{path}/events", params={"cursor": first.json()["next"]}).json()
    assert ([event["seq"] for event in rest["items"]], rest["next"]) == ([3], None)
    same = live_service.client.get(
        f"{path}/events", params={"limit": 2}, headers={"If-None-Match": first.headers["etag"]}
    )
    assert same.status_code == 304


def add_checkpoint(live: Live, job_id: str, attempt: str, step: int, state: str = "stored", **metrics: float) -> str:
    checkpoint = new_id("ckpt")
    with live.context.db.write() as tx:
        tx.execute(
            insert(Checkpoint).values(
                id=checkpoint,
                job_id=job_id,
                attempt_id=attempt,
                name=f"step-{step}",
                step=step,
                state=state,
                metrics=metrics,
                size=10,
                created_us=step,
            )
        )
    return checkpoint


def test_a_rerun_with_another_effective_batch_is_warned_in_its_events(live_service: Live) -> None:
    add_node(live_service.context.db, "two", devices=2, draining=True)

    def rerun_on_one(recipe: dict[str, Any], **body: Any) -> str:
        job = dict(
            live_service.client.post(JOBS, json={"recipe": recipe, "resources": {"gpus": 2}}).raise_for_status().json()
        )
        attempt = run(live_service, job["id"])
        add_checkpoint(live_service, job["id"], attempt, 1)
        end(live_service, attempt, job["id"])
        changes = {"resources": {"gpus": 1}}
        answer = live_service.client.post(f"{JOBS}/{job['id']}/rerun", json={"changes": changes, **body})
        (event, *_) = live_service.client.get(f"{JOBS}/{answer.json()['id']}/events").json()["items"]
        return str(event["message"])

    said = rerun_on_one({"batch_size": 32}, from_checkpoint="latest")
    assert "goes on with an effective batch of 32 samples instead of 64" in said
    assert "recipe.global_batch_size 64" in said
    assert "effective batch" not in rerun_on_one({"batch_size": 32})  # from the start
    assert "effective batch" not in rerun_on_one({"global_batch_size": 64}, from_checkpoint="latest")


def test_a_rerun_is_a_new_job_of_the_same_spec(live_service: Live) -> None:
    keep = {"keep_best": {"metric": "acc"}}
    job = submit(live_service, tags=["t"], checkpoint=keep, time_limit=60)
    attempt = run(live_service, job["id"])
    best = add_checkpoint(live_service, job["id"], attempt, 1, acc=0.9)
    newest = add_checkpoint(live_service, job["id"], attempt, 2, acc=0.5)
    with live_service.context.db.write() as tx:  # its node's clock was set back
        tx.execute(update(Checkpoint).where(Checkpoint.id == newest).values(created_us=0))
    end(live_service, attempt, job["id"])
    path = f"{JOBS}/{job['id']}/rerun"
    plain = live_service.client.post(path)
    assert plain.status_code == 201
    assert (plain.json()["rerun_of"], plain.json()["resumed_from"]) == (job["id"], None)
    assert plain.json()["spec"] == job["spec"]

    def rerun(**body: Any) -> Any:
        return live_service.client.post(path, json=body).json()

    assert rerun(from_checkpoint="latest")["resumed_from"] == newest
    assert rerun(from_checkpoint="best")["resumed_from"] == best
    assert rerun(from_checkpoint=best)["resumed_from"] == best
    changed = rerun(changes={"name": "again", "time_limit": None, "env": {"A": "1"}})
    assert (changed["name"], changed["spec"]["time_limit"], changed["spec"]["env"]) == ("again", None, {"A": "1"})
    wrong = live_service.client.post(path, json={"from_checkpoint": "ckpt-x"})
    assert problem(wrong) == (422, "invalid-request", ["from_checkpoint"])
    wrong = live_service.client.post(path, json={"changes": {"resourcs": {}}})
    assert problem(wrong) == (422, "invalid-request", ["changes.resourcs"])
    wrong = live_service.client.post(path, json={"chnges": {}})
    assert problem(wrong)[0] == 422
    keyed = [live_service.client.post(path, headers={"Idempotency-Key": "r"}).json()["id"] for _ in range(2)]
    assert keyed[0] == keyed[1]


def test_lists_by_several_values_are_those_of_each(live_service: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(6):
        submit(live_service, name=f"net-{n}", tags=[["a"], ["b"], ["a", "b"]][n % 3])
    for number in (2, 3):
        live_service.client.post(f"{JOBS}/{number}/cancel")
    job = live_service.client.get(f"{JOBS}/1").json()

    def numbers(**params: Any) -> list[int]:
        return [job["number"] for job in live_service.client.get(JOBS, params=params).json()["items"]]

    def counted(**params: Any) -> dict[str, int]:
        found: dict[str, int] = live_service.client.get(f"{JOBS}/counts", params=params).json()["states"]
        return found

    for most in (find.MOST_ALTERNATIVES, 1):
        monkeypatch.setattr(find, "MOST_ALTERNATIVES", most)
        assert numbers(tag=["a", "b"], state=["queued", "cancelled"]) == [6, 5, 4, 3, 2, 1]
        assert numbers(tag=["a", "b"], state=["queued", "running"], limit=2) == [6, 5]
        assert numbers(tag=["a", "b"], state=["queued", "running"], limit=3) == [6, 5, 4]
        page = live_service.client.get(JOBS, params={"tag": ["a", "b"], "state": "queued", "limit": 3}).json()
        assert numbers(tag=["a", "b"], state="queued", cursor=page["next"]) == [1], "job 6 counts once"
        assert numbers(tag=["a", "b"], state="cancelled", cursor=3) == [2]
        assert counted(tag=["a", "b"]) == {"queued": 4, "cancelled": 2}
    assert numbers(q=job["id"][:20]) == [1]
    assert counted(most=3) == {"queued": 3, "cancelled": 2}


def numbers(live: Live, **params: Any) -> list[int]:
    answer = live.client.get(JOBS, params=params)
    assert answer.status_code == 200, answer.text
    return [job["number"] for job in answer.json()["items"]]


def test_a_part_of_a_list_in_either_order(live_service: Live) -> None:
    for _ in range(5):
        submit(live_service, tags=["a"])
    assert numbers(live_service, offset=1, limit=2) == [4, 3]
    assert numbers(live_service, order="oldest", limit=2) == [1, 2]
    page = live_service.client.get(JOBS, params={"order": "oldest", "limit": 2, "offset": 1, "tag": "a"}).json()
    assert [job["number"] for job in page["items"]] == [2, 3]
    assert numbers(live_service, order="oldest", cursor=page["next"]) == [4, 5]
    assert numbers(live_service, state=["queued", "running"], offset=4) == [1]
    assert numbers(live_service, offset=9) == []


def test_a_list_by_a_column(live_service: Live) -> None:
    for name, priority in (("b", "low"), ("a", "high"), ("c", "high")):
        submit(live_service, name=name, priority=priority)
    assert numbers(live_service, order="name") == [2, 1, 3]
    assert numbers(live_service, order="-priority") == [3, 2, 1]
    page = live_service.client.get(JOBS, params={"order": "-name", "limit": 2}).json()
    assert [job["name"] for job in page["items"]] == ["c", "b"]
    assert numbers(live_service, order="-name", cursor=page["next"]) == [2]
    wrong = live_service.client.get(JOBS, params={"order": "-name", "cursor": "3"})
    assert problem(wrong) == (422, "invalid-request", ["cursor"])
    unknown = live_service.client.get(JOBS, params={"order": "colour"})
    assert problem(unknown) == (422, "invalid-request", ["order"])


def test_the_jobs_of_a_sweep_by_its_number_id_or_name(live_service: Live) -> None:
    submit(live_service, name="alone")
    grid = {"parameters": {"lr": [0.1, 0.2]}}
    sweep = submit(live_service, name="rates", command=["train.py", "--lr", "{lr}"], sweep=grid)
    trials = numbers(live_service, group=sweep["number"])
    assert len(trials) == 2
    assert numbers(live_service, group=sweep["id"]) == numbers(live_service, group="rates") == trials
    assert numbers(live_service, group="rate") == numbers(live_service, group="alone") == []
    counts = live_service.client.get(f"{JOBS}/counts", params={"group": "rates"}).json()
    assert counts["states"] == {"queued": 2}
    facets = live_service.client.get(f"{JOBS}/facets", params={"group": "rates", "by": "user"}).json()
    assert [facet["states"] for facet in facets] == [{"queued": 2}]


def test_jobs_by_a_metrics_newest_value(live_service: Live) -> None:
    jobs = [submit(live_service, tags=["a"]) for _ in range(4)]
    for job, values in zip(jobs, ([0.7, 0.95], [0.91], [0.2], []), strict=True):
        attempt = run(live_service, job["id"])
        for number, value in enumerate(values, 1):
            about = {"number": job["number"], "attempt": number, "stream": str(number)}
            add_series(live_service, job["id"], attempt, "val/accuracy", value, **about)
    add_series(live_service, jobs[1]["id"], attempt, "val/accuracy", 0.1, number=2, rank=1, stream="other")

    def found(*metric: str, **more: Any) -> list[int]:
        return numbers(live_service, metric=list(metric), **more)

    assert found("val/accuracy>0.9") == [2, 1]
    assert found("val/accuracy > 0.9", order="oldest", limit=1) == [1]
    assert found("val/accuracy<=0.91", tag="a", state=["running", "failed"]) == [3, 2]
    assert found("val/accuracy>0.2", "val/accuracy<0.95") == [2]
    assert found("val/accuracy=0.7") == []  # an earlier attempt's
    assert found("val/loss>0") == []
    assert numbers(live_service, order="-metric:val/accuracy") == [1, 2, 3, 4]
    assert numbers(live_service, order="metric:val/accuracy", offset=1) == [2, 1, 4]
    for wrong in ("val/accuracy", "> 0.9", "val/accuracy>high", "a>1>2"):
        assert problem(live_service.client.get(JOBS, params={"metric": wrong})) == (422, "invalid-request", ["metric"])
    counts = live_service.client.get(f"{JOBS}/counts", params={"metric": "val/accuracy>0.9"}).json()
    assert counts["states"] == {"running": 2}


def test_a_metric_that_is_sent_is_found_by_its_value(live_service: Live) -> None:
    job = submit(live_service)
    attempt = run(live_service, job["id"])
    report(live_service, attempt, 0, 1, loss=0.25)
    assert numbers(live_service, metric="loss<0.3") == [1]


def test_jobs_are_counted_by_whose_and_what_they_are(live_service: Live) -> None:
    submit(live_service, tags=["a", "b"], project="vision")
    submit(live_service, tags=["a"])
    submit(live_service)
    live_service.client.post(f"{JOBS}/3/cancel")
    sweep = submit(live_service, command=["t", "{lr}"], sweep={"parameters": {"lr": [1, 2]}})

    def by(kind: str, **params: Any) -> list[tuple[str, str, dict[str, int]]]:
        items = live_service.client.get(f"{JOBS}/facets", params={"by": kind, **params}).json()
        return [(each["value"], each["title"], each["states"]) for each in items]

    assert by("project") == [
        ("default", "default", {"queued": 3, "cancelled": 1}),
        ("vision", "vision", {"queued": 1}),
    ]
    assert by("tag", state="queued") == [("", "", {"queued": 2}), ("a", "a", {"queued": 2}), ("b", "b", {"queued": 1})]
    swept = (str(sweep["number"]), sweep["name"], {"queued": 2})
    assert by("sweep") == [("", "", {"queued": 2, "cancelled": 1}), swept]
    assert by("user", q="like nothing else") == []
    assert [sum(each[2].values()) for each in by("user")] == [5]
    assert numbers(live_service, tag="", state="cancelled") == [3]
    assert numbers(live_service, tag=["", "b"], trials=False) == [3, 1]


def test_of_each_state_the_newest_jobs_are_counted_by_whose_they_are(
    live_service: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facets, "LOOKED", 2)
    for tags in (["old"], ["net", "a"], ["net"], ["other"]):
        submit(live_service, name=f"train-{tags[0]}", tags=tags)
    live_service.client.post(f"{JOBS}/1/cancel")

    def by_tag(*, more: bool = False, **params: Any) -> dict[str, dict[str, int]]:
        items = live_service.client.get(f"{JOBS}/facets", params={"by": "tag", **params}).json()
        assert {each["more"] for each in items} == {more}
        return {each["value"]: each["states"] for each in items}

    assert by_tag(more=True) == {"net": {"queued": 1}, "old": {"cancelled": 1}, "other": {"queued": 1}}
    assert by_tag(tag=["net", "a"]) == {"net": {"queued": 2}, "a": {"queued": 1}}
    assert by_tag(q="train-net") == {"net": {"queued": 2}, "a": {"queued": 1}}
    monkeypatch.setattr(text_search, "MANY", 1)
    assert by_tag(q="train-net") == {"net": {"queued": 2}, "a": {"queued": 1}}
    assert by_tag(state="cancelled", q="old") == {"old": {"cancelled": 1}}
