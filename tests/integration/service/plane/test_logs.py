"""Logs as people read them: ranges, and streams that resume."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from httpx_sse import EventSource
from sqlalchemy import delete, select, update

from service.api import follow
from service.db.models import LogStream, LogTime
from service.infra.times import moment
from tests.support.plane import Plane, Seeded


def read(plane: Plane, seeded: Seeded, **params: Any) -> httpx.Response:
    return plane.get(f"/jobs/{seeded.job}/logs", params=params)


@contextmanager
def followed(plane: Plane, path: str, headers: dict[str, str] | None = None, **params: Any) -> Iterator[Any]:
    """The events of a stream, as they come."""
    with plane.live.client.stream("GET", f"/api/v1{path}", params=params, headers=headers, timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield (event for event in EventSource(answer).iter_sse() if event.data)


def until_end(events: Any) -> tuple[str, list[Any]]:
    """The text of all events up to `end`, and the events."""
    seen = []
    for event in events:
        seen.append(event)
        if event.event == "end":
            break
    return "".join(json.loads(event.data).get("text", "") for event in seen), seen


def test_ranges_say_where_they_lie(data_plane: Plane) -> None:
    seeded = data_plane.job()
    data_plane.log(seeded, 0, b"0123456789")
    answer = read(data_plane, seeded, offset=2, limit=5)
    assert answer.content == b"23456"
    names = ("Offset", "Next-Offset", "Size", "Attempt")
    assert [answer.headers[f"TorchYard-{name}"] for name in names] == ["2", "7", "10", "1"]
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert read(data_plane, seeded, offset=-3).content == b"789"
    assert read(data_plane, seeded, offset=-30).content == b"0123456789"
    beyond = read(data_plane, seeded, offset=50)
    assert (beyond.content, beyond.headers["TorchYard-Next-Offset"]) == (b"", "10")
    for params in ({"limit": 0}, {"limit": 5 * 2**20}, {"rank": -65}, {"attempt": 0}, {"offset": "x"}):
        assert read(data_plane, seeded, **params).status_code == 422


def test_logs_of_attempts_and_ranks_are_apart(data_plane: Plane) -> None:
    first = data_plane.job()
    assert read(data_plane, first).headers["TorchYard-Size"] == "0"
    data_plane.log(first, 0, b"first", rank=1)
    second = data_plane.attempt(first.job)
    data_plane.log(second, 0, b"second", rank=1)
    data_plane.log(second, 0, b"launcher", rank=-1)
    assert read(data_plane, first, rank=1).content == b"second"
    assert read(data_plane, first, rank=1, attempt=1).content == b"first"
    assert read(data_plane, first, rank=-1).content == b"launcher"
    assert read(data_plane, first, attempt=3).status_code == 404
    assert data_plane.get("/jobs/job-none/logs").status_code == 404
    assert data_plane.get("/jobs/job-none/logs/stream").status_code == 404
    assert data_plane.get("/jobs/job-none/logs/streams").status_code == 404
    assert [(s["attempt"], s["rank"]) for s in data_plane.get(f"/jobs/{first.job}/logs/streams").json()] == [
        (1, 1),
        (2, -1),
        (2, 1),
    ]


def test_an_unchanged_log_is_not_sent_again(data_plane: Plane) -> None:
    seeded = data_plane.job()
    data_plane.log(seeded, 0, b"abc")
    tag = read(data_plane, seeded).headers["etag"]
    path = f"/jobs/{seeded.job}/logs"
    assert data_plane.get(path, headers={"If-None-Match": tag}).status_code == 304
    data_plane.log(seeded, 3, b"d")
    assert data_plane.get(path, headers={"If-None-Match": tag}).content == b"abcd"


class Clock:
    """The service's clock, moved by hand."""

    def __init__(self, plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = plane.ctx.now_us()
        # The context is frozen, and the running service holds this one.
        monkeypatch.setitem(plane.ctx.__dict__, "now_us", lambda: self.now)

    def at(self, seconds: float) -> str:
        """The time so many seconds from the clock's."""
        return (moment(self.now) + timedelta(seconds=seconds)).isoformat()

    def run(self, seconds: float) -> None:
        self.now += int(seconds * 1_000_000)


def notes(plane: Plane) -> list[tuple[int, int, int]]:
    with plane.ctx.db.read() as tx:
        query = select(LogTime.rank, LogTime.offset, LogTime.time_us).order_by(LogTime.rank, LogTime.offset)
        return [(row.rank, row.offset, row.time_us) for row in tx.execute(query)]


def test_a_log_is_read_from_a_moment_on(data_plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seeded = Clock(data_plane, monkeypatch), data_plane.job()
    start = clock.now
    assert read(data_plane, seeded, since=clock.at(-60)).content == b""
    data_plane.log(seeded, 0, b"a\n")
    clock.run(4)
    data_plane.log(seeded, 2, b"b\nhalf ")
    data_plane.log(seeded, 0, b"other\n", rank=1)
    clock.run(3600)
    data_plane.log(seeded, 9, b"a line\nc\n")
    data_plane.log(seeded, 18, b"d")
    everything, hour_later = b"a\nb\nhalf a line\nc\nd", b"half a line\nc\nd"
    assert read(data_plane, seeded, since=clock.at(-3700)).content == everything
    assert read(data_plane, seeded, since=clock.at(-3604)).content == everything
    for seconds in (-3590, -1800, 0, 4):
        answer = read(data_plane, seeded, since=clock.at(seconds))
        assert (answer.content, answer.headers["TorchYard-Offset"]) == (hour_later, "4")
    assert read(data_plane, seeded, since=clock.at(6)).content == b""
    assert read(data_plane, seeded, since=clock.at(-3604), rank=1).content == b"other\n"
    assert read(data_plane, seeded, since=clock.at(-1800), rank=1).content == b""
    assert read(data_plane, seeded, since=clock.at(-1800), offset=-3).content == b"c\nd"
    assert read(data_plane, seeded, since=clock.at(-1800), offset=-20).content == hour_later
    assert read(data_plane, seeded, since=clock.at(-1800), offset=2, limit=4).content == b"half"
    assert notes(data_plane) == [(0, 0, start), (0, 9, clock.now), (1, 0, start + 4_000_000)]


def test_times_are_noted_every_few_seconds_and_survive_a_step_of_the_clock(
    data_plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, seeded = Clock(data_plane, monkeypatch), data_plane.job()
    for n in range(20):
        data_plane.log(seeded, 2 * n, b"x\n")
        clock.run(1)
    assert [offset for _, offset, _ in notes(data_plane)] == [0, 10, 20, 30]
    data_plane.log(seeded, 0, b"x\n" * 20)
    data_plane.log(seeded, 40, b"", dropped=3)
    assert len(notes(data_plane)) == 4
    clock.run(-3600)
    data_plane.log(seeded, 40, b"y\n")
    assert notes(data_plane)[-1] == (0, 40, clock.now)
    assert read(data_plane, seeded, since=clock.at(0)).content.endswith(b"y\n")


def test_what_was_stored_without_times_is_shown_from_its_start(
    data_plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, seeded = Clock(data_plane, monkeypatch), data_plane.job()
    data_plane.log(seeded, 0, b"old\n")
    with data_plane.ctx.db.write() as tx:
        tx.execute(delete(LogTime))
        tx.execute(update(LogStream).values(timed_us=None))
    assert read(data_plane, seeded, since=clock.at(3600)).content == b"old\n"
    clock.run(100)
    data_plane.log(seeded, 4, b"new\n")
    assert read(data_plane, seeded, since=clock.at(-1)).content == b"old\nnew\n"
    assert read(data_plane, seeded, since=clock.at(1)).content == b"new\n"


def test_a_line_that_began_far_before_is_not_sought(data_plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seeded, bar = Clock(data_plane, monkeypatch), data_plane.job(), b"\r  1%" * 20_000
    data_plane.log(seeded, 0, bar)
    clock.run(100)
    data_plane.log(seeded, len(bar), b"\r 99%")
    assert read(data_plane, seeded, since=clock.at(0)).content == b"\r 99%"


@pytest.mark.parametrize(
    ("since", "words"),
    [
        ("yesterday", '"yesterday" is no time: write it as 2026-11-23T09:00Z'),
        ("2026-11-23T09:00", '"2026-11-23T09:00" has no time zone: write it as 2026-11-23T09:00Z'),
    ],
)
def test_a_moment_that_is_none_is_told_what_to_write(data_plane: Plane, since: str, words: str) -> None:
    answer = read(data_plane, data_plane.job(), since=since)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"].endswith("since")
    assert error["message"] == words


TEXT = "Schnee ❄ und 🔥, naïve\n"


def test_a_stream_follows_and_never_splits_a_character(data_plane: Plane) -> None:
    seeded, data = data_plane.job(), (TEXT * 5).encode()

    def write() -> None:
        for offset in range(0, len(data), 3):
            data_plane.log(seeded, offset, data[offset : offset + 3])
        data_plane.set_state(seeded, "succeeded", settled=True)

    with followed(data_plane, f"/jobs/{seeded.job}/logs/stream") as events:
        writer = threading.Thread(target=write)
        writer.start()
        text, seen = until_end(events)
        writer.join()
    assert text == TEXT * 5
    positions = [json.loads(event.data) for event in seen[:-1]]
    assert [event["offset"] for event in positions] == [0, *[event["next"] for event in positions[:-1]]]
    assert positions[-1]["next"] == len(data)
    assert all("\ufffd" not in event["text"] for event in positions)


def test_a_stream_resumes_at_any_event(data_plane: Plane) -> None:
    seeded, data = data_plane.job(), (TEXT * 9000).encode()
    assert len(data) > 2 * follow.EVENT_BYTES
    data_plane.log(seeded, 0, data)
    data_plane.set_state(seeded, "failed", settled=True)
    path = f"/jobs/{seeded.job}/logs/stream"
    with followed(data_plane, path) as events:
        text, seen = until_end(events)
    assert text == TEXT * 9000
    for event in seen[:-1]:
        following = json.loads(event.data)["next"]
        for last in (event.id, str(following)):
            with followed(data_plane, path, headers={"Last-Event-ID": last}) as events:
                assert until_end(events)[0] == data[following:].decode()
    with followed(data_plane, path, offset=len(data)) as events:
        assert [event.event for event in until_end(events)[1]] == ["end"]
    assert data_plane.get(path, headers={"Last-Event-ID": "1:2:x"}).status_code == 422


def test_a_resumed_stream_stays_with_its_attempt(data_plane: Plane) -> None:
    first = data_plane.job()
    data_plane.log(first, 0, b"from the first attempt")
    data_plane.set_state(first, "failed", settled=True)
    second = data_plane.attempt(first.job)
    data_plane.log(second, 0, b"from the second")
    path = f"/jobs/{first.job}/logs/stream"
    with followed(data_plane, path, headers={"Last-Event-ID": "1:5"}) as events:
        assert until_end(events)[0] == "the first attempt"


def test_bytes_that_are_no_text_come_as_replacement_characters(data_plane: Plane) -> None:
    seeded, data = data_plane.job(), bytes(range(256)) * 600 + b"\xf0\x9f"
    data_plane.log(seeded, 0, data)
    data_plane.set_state(seeded, "succeeded", settled=True)
    with followed(data_plane, f"/jobs/{seeded.job}/logs/stream") as events:
        assert until_end(events)[0] == data.decode(errors="replace")
    assert read(data_plane, seeded).content == data


def test_a_stream_waits_for_the_first_attempt(data_plane: Plane) -> None:
    other = data_plane.job()
    with data_plane.ctx.db.write() as tx:
        tx.exec_driver_sql(f"UPDATE jobs SET state = 'queued', attempt = 0 WHERE id = '{other.job}'")
        tx.exec_driver_sql(f"DELETE FROM members WHERE attempt_id = '{other.attempt}'")
        tx.exec_driver_sql(f"DELETE FROM attempts WHERE id = '{other.attempt}'")

    def start() -> None:
        seeded = data_plane.attempt(other.job)
        data_plane.log(seeded, 0, b"here")
        data_plane.set_state(seeded, "succeeded", settled=True)

    with followed(data_plane, f"/jobs/{other.job}/logs/stream") as events:
        starter = threading.Thread(target=start)
        starter.start()
        assert until_end(events)[0] == "here"
        starter.join()


def test_a_stream_of_an_ended_attempt_waits_for_late_bytes(data_plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "QUIET_S", 60.0)
    seeded = data_plane.job()
    data_plane.log(seeded, 0, b"early ")
    data_plane.set_state(seeded, "succeeded")
    with followed(data_plane, f"/jobs/{seeded.job}/logs/stream") as events:
        first = next(iter(events))
        data_plane.log(seeded, 6, b"late")
        second = next(iter(events))
        monkeypatch.setattr(follow, "QUIET_S", 0.1)
        text, _ = until_end(events)
    assert [json.loads(event.data)["text"] for event in (first, second)] == ["early ", "late"]
    assert text == ""


def test_streams_end_with_the_service(serve: Any) -> None:
    from tests.support import plane

    with serve() as live, plane.plane(live) as data_plane:
        seeded = data_plane.job()
        ended = []

        def follow_both(path: str) -> None:
            with followed(data_plane, path) as events:
                list(events)
            ended.append(path)

        paths = [f"/jobs/{seeded.job}/logs/stream", "/stream"]
        threads = [threading.Thread(target=follow_both, args=(path,)) for path in paths]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 60
        while len(live.context.hub._listeners) < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        began = time.monotonic()
        live.context.hub.close()
        for thread in threads:
            thread.join(60)
        assert sorted(ended) == sorted(paths)
        assert time.monotonic() - began < 40


def test_fifty_followers_hold_no_thread(data_plane: Plane) -> None:
    seeded = data_plane.job()
    done = []

    def follow_one() -> None:
        with followed(data_plane, f"/jobs/{seeded.job}/logs/stream") as events:
            done.append(until_end(events)[0])

    threads = [threading.Thread(target=follow_one) for _ in range(50)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    assert data_plane.log(seeded, 0, b"all see this").status_code == 200
    assert data_plane.get("/jobs").status_code == 200
    assert time.monotonic() - began < 40
    data_plane.set_state(seeded, "succeeded", settled=True)
    for thread in threads:
        thread.join(60)
    assert done == ["all see this"] * 50


def test_pages_are_told_what_changed(data_plane: Plane) -> None:
    seeded = data_plane.job()
    with followed(data_plane, "/stream") as events:
        waiting = iter(events)

        def notify() -> None:
            while not data_plane.ctx.hub._listeners:
                time.sleep(0.01)
            data_plane.ctx.hub.notify(f"job:{seeded.job}", "job:job-none", "jobs", "node:a", "node:b")

        notifier = threading.Thread(target=notify)
        notifier.start()
        told = [next(waiting) for _ in range(3)]
        notifier.join()
    assert [(event.event, json.loads(event.data)) for event in told] == [
        ("job", {"id": seeded.job, "version": 1}),
        ("jobs", {}),
        ("nodes", {}),
    ]
