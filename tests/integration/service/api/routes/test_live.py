"""One stream for all that a browser shows: topics that come and go, and events that are made once for everybody."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import httpx
import pytest

from service.api import publisher
from service.telemetry import logs
from tests.support.live import Live
from tests.support.plane import Plane, batch, plane
from tests.support.wait import until

Events = list[tuple[str, dict[str, Any]]]


class Stream:
    """An open stream, read in a thread."""

    def __init__(self, client: httpx.Client, *topics: str) -> None:
        self.events: Events = []
        self.ended = threading.Event()
        self._client = client
        self._thread = threading.Thread(target=self._read, args=(topics,))
        self._thread.start()
        self.id: str = self.wait("open")["stream"]

    def _read(self, topics: tuple[str, ...]) -> None:
        try:
            with self._client.stream("GET", "/api/v1/live", params={"topic": topics}) as answer:
                self._socket: socket.socket = answer.extensions["network_stream"].get_extra_info("socket")
                name = ""
                for line in answer.iter_lines():
                    word, _, rest = line.partition(": ")
                    if word == "event":
                        name = rest
                    elif word == "data" and name != "beat":
                        self.events.append((name, json.loads(rest)))
        except httpx.HTTPError:
            pass  # closed by the test
        finally:
            self.ended.set()

    def of(self, name: str) -> list[dict[str, Any]]:
        return [content for found, content in list(self.events) if found == name]

    def wait(self, name: str, matches: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        found = until(lambda: [content for content in self.of(name) if matches(content)])
        assert found is not None
        return found[0]

    def follow(self, *topics: str) -> int:
        return self._client.put(f"/api/v1/live/{self.id}", json={"topics": topics}).status_code

    def close(self) -> None:
        with suppress(OSError):  # the service may have ended it
            self._socket.shutdown(socket.SHUT_RDWR)  # a reader sees that its client is closed with the next beat only
        self._thread.join(60)
        self._client.close()
        assert not self._thread.is_alive()


@pytest.fixture
def data_plane(live_service: Live) -> Iterator[Plane]:
    with plane(live_service) as made:
        yield made


@contextmanager
def opened(live: Live, *topics: str, token: str | None = None) -> Iterator[Stream]:
    stream = Stream(live.as_token(token or live.admin_token), *topics)
    try:
        yield stream
    finally:
        stream.close()


def steps(stream: Stream) -> list[int]:
    return [point[0] for event in stream.of("metrics") for series in event["series"] for point in series["points"]]


def test_a_list_is_told_when_it_changes_and_a_job_with_what_it_is(live_service: Live) -> None:
    with opened(live_service, "jobs", "nodes") as stream:
        spec = {"name": "resnet", "command": ["train.py"], "resources": {"gpus": 1}}
        made = live_service.client.post("/api/v1/jobs", json=spec).raise_for_status().json()
        told = stream.wait("job", lambda event: event["job"]["id"] == made["id"])
        assert told["changed"]
        assert {**told["job"], "spec": made["spec"]}.keys() == made.keys()
        stream.wait("jobs")
        live_service.client.post(f"/api/v1/jobs/{made['number']}/cancel").raise_for_status()
        stream.wait("job", lambda event: event["job"]["state"] == "cancelled")
        live_service.context.hub.notify("node:any")
        stream.wait("nodes")


def test_a_followed_job_is_told_of_however_many_change_with_it(
    live_service: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "MAX_JOBS", 2)
    spec = {"command": ["echo", "{lr}"], "resources": {"gpus": 1}, "sweep": {"lr": [1, 2, 3, 4, 5]}}
    made = live_service.client.post("/api/v1/jobs", json=spec).raise_for_status().json()
    trials = live_service.client.get(f"/api/v1/groups/{made['id']}/trials").raise_for_status().json()["items"]
    last = max(each["id"] for each in trials)
    with opened(live_service, "jobs", f"job:{last}") as stream:
        live_service.client.post(f"/api/v1/groups/{made['id']}/hold").raise_for_status()
        assert stream.wait("job", lambda event: event["job"]["id"] == last)["job"]["held"]


def test_a_stream_follows_only_its_topics(live_service: Live, data_plane: Plane) -> None:
    one, other = data_plane.job(), data_plane.job()
    with opened(live_service, f"job:{one.job}") as stream:
        assert data_plane.post(other, "metrics", batch(0, [1], loss=1.0)).status_code == 200
        assert data_plane.post(one, "metrics", batch(0, [1], loss=1.0)).status_code == 200
        progress = stream.wait("job", lambda event: event["job"]["latest"] == {"loss": 1.0})
        assert (progress["job"]["id"], progress["changed"]) == (one.job, False)
        assert {event["job"]["id"] for event in stream.of("job")} == {one.job}
        assert stream.follow(f"job:{other.job}") == 204
        live_service.context.hub.notify(f"job:{one.job}", f"job:{other.job}")
        stream.wait("job", lambda event: event["job"]["id"] == other.job)
        assert stream.follow("nonsense") == 422
        with opened(live_service) as second:
            second.id = "strange"
            assert second.follow() == 404


def test_points_come_once_each_in_one_chain_for_all(live_service: Live, data_plane: Plane) -> None:
    """Everybody comes with another cursor, while points arrive all the time."""
    seeded, reported = data_plane.job(), list[int]()
    all_watch = threading.Event()

    def report() -> None:
        last = False
        while not last:  # one point comes when all watch
            last, step = all_watch.wait(0.02), len(reported)
            assert data_plane.post(seeded, "metrics", batch(step, [step], loss=1.0)).status_code == 200
            reported.append(step)

    with ExitStack() as stack:
        reporter = threading.Thread(target=report)
        reporter.start()
        stack.callback(reporter.join)
        stack.callback(all_watch.set)
        watchers = []
        for _ in range(6):
            answer = live_service.client.get(f"/api/v1/jobs/{seeded.job}/metrics").json()
            had = [point[0] for series in answer["series"] for point in series["points"]]
            stream = stack.enter_context(opened(live_service, f"metrics:{seeded.job}:{answer['cursor']}"))
            watchers.append((answer["cursor"], had, stream))
            time.sleep(0.2)
        all_watch.set()
        reporter.join()
        for cursor, had, stream in watchers:
            until(lambda stream=stream: steps(stream)[-1:] == reported[-1:])  # type: ignore[misc]
            events = stream.of("metrics")
            if not had:  # nothing was there to go on from
                assert events[0]["reset"]
                continue
            assert had + steps(stream) == reported
            assert [event["since"] for event in events] == [cursor, *[event["cursor"] for event in events[:-1]]]


def test_points_are_gathered_for_a_second(live_service: Live, data_plane: Plane) -> None:
    seeded = data_plane.job()
    assert data_plane.post(seeded, "metrics", batch(0, [0], loss=1.0)).status_code == 200
    cursor = live_service.client.get(f"/api/v1/jobs/{seeded.job}/metrics").json()["cursor"]
    with opened(live_service, f"metrics:{seeded.job}:{cursor}", f"job:{seeded.job}") as stream:
        began = time.monotonic()
        for step in range(1, 60):
            assert data_plane.post(seeded, "metrics", batch(step, [step], loss=1.0)).status_code == 200
        until(lambda: steps(stream) == list(range(1, 60)))
        most = (time.monotonic() - began) + 2
        assert len(stream.of("metrics")) <= most
        assert len(stream.of("job")) <= most


def test_a_new_attempt_has_the_points_read_anew(live_service: Live, data_plane: Plane) -> None:
    first = data_plane.job()
    assert data_plane.post(first, "metrics", batch(0, [0, 1, 2], loss=1.0)).status_code == 200
    cursor = live_service.client.get(f"/api/v1/jobs/{first.job}/metrics").json()["cursor"]
    with opened(live_service, f"metrics:{first.job}:{cursor}") as stream:
        second = data_plane.attempt(first.job, resumed_from_step=1)
        assert data_plane.post(second, "metrics", batch(0, [2], loss=2.0)).status_code == 200
        told = stream.wait("metrics")
        assert (told["reset"], told["series"]) == (True, [])


def test_logs_of_several_jobs_come_in_one_stream(live_service: Live, data_plane: Plane) -> None:
    one, other = data_plane.job(), data_plane.job()
    data_plane.log(one, 0, b"before ")
    topics = [f"log:{one.job}:1:0:7", f"log:{other.job}:1:0:0"]
    with opened(live_service, *topics) as stream:
        data_plane.log(one, 7, b"after")
        data_plane.log(other, 0, b"elsewhere")
        assert stream.wait("log", lambda event: event["topic"] == topics[0])["text"] == "after"
        assert stream.wait("log", lambda event: event["topic"] == topics[1])["text"] == "elsewhere"
        data_plane.set_state(one, "succeeded", settled=True)
        assert stream.wait("log-end")["topic"] == topics[0]
        assert stream.follow() == 204
        data_plane.log(other, 9, b" and on")
        live_service.context.hub.notify("queue")
        assert [event["text"] for event in stream.of("log") if event["topic"] == topics[1]] == ["elsewhere"]


@contextmanager
def faulty(monkeypatch: pytest.MonkeyPatch, module: object, name: str, job: str) -> Iterator[None]:
    """A function fails for whatever names a job."""
    proceed = getattr(module, name)

    def fail(*args: object) -> object:
        if any(job in arg for arg in args if isinstance(arg, str | list)):
            raise KeyError("a fault")
        return proceed(*args)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, fail)
        yield


def test_a_fault_in_one_topic_leaves_the_others_and_passes(
    live_service: Live, data_plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "RETRY_S", 0.1)
    bad, good = data_plane.job(), data_plane.job()
    cursors = []
    for each in (bad, good):
        assert data_plane.post(each, "metrics", batch(0, [0], loss=1.0)).status_code == 200
        cursors.append(live_service.client.get(f"/api/v1/jobs/{each.job}/metrics").json()["cursor"])
    topics = [f"metrics:{each.job}:{cursor}" for each, cursor in zip((bad, good), cursors, strict=True)]
    topics += [f"job:{bad.job}", f"job:{good.job}", f"log:{bad.job}:1:0:0", f"log:{good.job}:1:0:0"]
    with ExitStack() as stack:
        with (
            faulty(monkeypatch, publisher.queries, "with_owners", bad.job),
            faulty(monkeypatch, publisher.metrics, "newer", bad.job),
            faulty(monkeypatch, logs, "current", bad.job),
        ):
            stream = stack.enter_context(opened(live_service, *topics))
            for each in (bad, good):
                data_plane.log(each, 0, b"hello")
                assert data_plane.post(each, "metrics", batch(1, [1], loss=2.0)).status_code == 200
            live_service.context.hub.notify(f"job:{bad.job}", f"job:{good.job}")
            for name in ("job", "metrics", "log"):
                stream.wait(name)
            assert bad.job not in str(stream.events)
        stream.wait("job", lambda event: event["job"]["id"] == bad.job)
        stream.wait("metrics", lambda event: event["job"] == bad.job)
        stream.wait("log", lambda event: bad.job in event["topic"])
        assert not stream.ended.is_set()


def test_a_stream_ends_with_its_token_and_belongs_to_its_user(live_service: Live) -> None:
    live_service.client.post("/api/v1/users", json={"name": "ben"}).raise_for_status()
    asked = {"name": "laptop", "user": "ben", "scopes": ["read"]}
    token = live_service.client.post("/api/v1/tokens", json=asked).raise_for_status().json()
    with opened(live_service, "jobs", token=token["secret"]) as stream:
        path = f"/api/v1/live/{stream.id}"
        assert live_service.client.put(path, json={"topics": []}).status_code == 404
        live_service.client.delete(f"/api/v1/tokens/{token['id']}").raise_for_status()
        live_service.context.hub.notify("jobs")
        assert stream.ended.wait(60)
        assert stream.of("jobs") == []


def test_streams_end_with_the_service(live_service: Live, data_plane: Plane) -> None:
    seeded = data_plane.job()
    with opened(live_service, "jobs") as idle, opened(live_service, f"log:{seeded.job}:1:0:0") as following:
        live_service.context.hub.close()
        assert idle.ended.wait(60)
        assert following.ended.wait(60)


def test_nothing_runs_once_nobody_listens(live_service: Live) -> None:
    with opened(live_service, "jobs"):
        until(lambda: "jobs" in live_service.context.hub._listeners)
    publisher = live_service.app.state.publisher
    until(lambda: not publisher._subscribers)
    live_service.context.hub.notify("jobs")
    until(publisher._task.done)
    assert "jobs" not in live_service.context.hub._listeners


def test_a_user_opens_no_more_streams_than_the_limit_of_whatever_sort(serve: Callable[..., Any]) -> None:
    with serve(streams_per_user=3) as live, ExitStack() as stack:
        job = plane_job(live)
        paths = ["/live", "/stream", f"/jobs/{job}/logs/stream"]
        for path in paths:
            answer = stack.enter_context(live.client.stream("GET", f"/api/v1{path}"))
            assert answer.status_code == 200
        for path in paths:
            refused = live.client.get(f"/api/v1{path}")
            assert (refused.status_code, refused.json()["type"].rpartition("/")[2]) == (429, "too-many-requests")
            assert "has 3 streams open" in refused.json()["detail"]
        stack.close()

        def opens() -> bool:
            with live.client.stream("GET", "/api/v1/live") as answer:
                return answer.status_code == 200

        until(opens, what="the end of a stream that was closed")


def plane_job(live: Live) -> str:
    with plane(live) as made:
        return made.job().job
