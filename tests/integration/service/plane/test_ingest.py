"""Whatever is cut, doubled, reordered or lost on the way: what is stored is what the job wrote."""

import json
import math
import resource
import threading
from collections.abc import Callable
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from service.db.models import Job, LogStream, MetricPoint, MetricSeries, MetricStream, Sample
from service.ingest.samples import AHEAD_US
from tests.support.plane import Plane, Seeded, batch
from torchyard import wire

LIVELY = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def stored_log(plane: Plane, seeded: Seeded, rank: int = 0) -> bytes:
    data, offset = b"", 0
    while True:
        answer = plane.get(f"/jobs/{seeded.job}/logs", params={"rank": rank, "offset": offset, "limit": 70_000})
        data += answer.content
        offset = int(answer.headers["TorchYard-Next-Offset"])
        if offset == int(answer.headers["TorchYard-Size"]):
            return data


@LIVELY
@given(
    data=st.binary(min_size=1, max_size=3000),
    sends=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 1500), st.booleans()), max_size=25),
)
def test_log_bytes_are_exact(data_plane: Plane, data: bytes, sends: list[tuple[int, int, bool]]) -> None:
    """Batches start anywhere, come doubled and out of order; the sender only ever believes a mark."""
    seeded = data_plane.job()
    mark = 0
    for start, length, at_mark in sends:
        offset = mark if at_mark else min(start, len(data))
        answer = data_plane.log(seeded, offset, data[offset : offset + length])
        if offset > mark:
            assert answer.status_code == 409
            assert answer.json()["offset"] == mark
        else:
            assert answer.status_code == 200
            assert answer.json()["offset"] == max(mark, min(offset + length, len(data)))
            mark = answer.json()["offset"]
    assert data_plane.log(seeded, mark, data[mark:]).json() == {"offset": len(data)}
    assert stored_log(data_plane, seeded) == data


def test_many_senders_of_one_log_at_once_store_it_once(data_plane: Plane) -> None:
    seeded, data = data_plane.job(), bytes(range(256)) * 400

    def send() -> None:
        mark = 0
        with data_plane.live.as_token(data_plane.live.node_token) as client:
            while mark < len(data):
                answer = client.post(
                    f"/api/v1/agent/attempts/{seeded.attempt}/logs",
                    params={"rank": 0, "offset": mark},
                    content=data[mark : mark + 7001],
                    headers={wire.PROTOCOL_HEADER: "1"},
                )
                mark = answer.json()["offset"]

    together(send, 4)
    assert stored_log(data_plane, seeded) == data


def together(work: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_log_of_100_mb_needs_little_memory(data_plane: Plane) -> None:
    seeded = data_plane.job()
    piece = bytes(range(256)) * 4096
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(100):
        assert data_plane.log(seeded, number * len(piece), piece).status_code == 200
    params = {"offset": 50 * len(piece) + 17, "limit": 1000}
    answer = data_plane.get(f"/jobs/{seeded.job}/logs", params=params)
    assert answer.content == (piece + piece)[17:1017]
    assert answer.headers["TorchYard-Size"] == str(100 * len(piece))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 60_000, f"{grown} KiB more"


def test_a_log_batch_has_bounds(data_plane: Plane) -> None:
    seeded = data_plane.job()
    assert data_plane.log(seeded, 0, bytes(2**20 + 1)).status_code == 413
    assert data_plane.log(seeded, -1, b"x").status_code == 422
    assert data_plane.log(seeded, 0, b"x", rank=-65).status_code == 422
    assert data_plane.log(seeded, 0, b"x", rank=-2).status_code == 403
    assert data_plane.get(f"/jobs/{seeded.job}/logs/streams").json() == []


def test_dropped_bytes_are_the_most_that_was_said(data_plane: Plane) -> None:
    seeded = data_plane.job()
    for offset, dropped in ((0, 0), (0, 500), (0, 200), (1, 700)):
        data_plane.log(seeded, offset, b"xy"[offset:], dropped=dropped)
    expected = [{"attempt": 1, "rank": 0, "size": 2, "dropped_bytes": 700}]
    assert data_plane.get(f"/jobs/{seeded.job}/logs/streams").json() == expected


VALUE = st.floats(-1e300, 1e300) | st.sampled_from(["nan", "inf", "-inf"])
LINE = st.none() | st.dictionaries(st.sampled_from(["loss", "val/acc", "lr"]), VALUE, max_size=3)


def lines_batch(lines: list[Any], start: int, end: int) -> wire.MetricBatch:
    """A batch of the lines of a file of ten bytes a line; None is a line that cannot be read."""
    records = [
        (n, wire.MetricRecord(step=n * 2, time_us=n, values=values))
        for n, values in enumerate(lines[start:end], start)
        if values is not None
    ]
    return wire.MetricBatch(
        node_rank=0,
        stream="rank-0-7-7",
        rank=0,
        offset=start * 10,
        end=end * 10,
        records=records,
        skipped=lines[start:end].count(None),
    )


@LIVELY
@given(
    lines=st.lists(LINE, min_size=1, max_size=30),
    sends=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.booleans()), max_size=25),
)
def test_metric_points_are_exact(data_plane: Plane, lines: list[Any], sends: list[tuple[int, int, bool]]) -> None:
    """As for logs: any batches in any order, and every point is there once, every bad line counted once."""
    seeded = data_plane.job()
    mark = 0
    for start, length, at_mark in [*sends, *[(0, 30, True)] * 2]:
        first = mark // 10 if at_mark else min(start, len(lines))
        last = min(first + length, len(lines))
        answer = data_plane.post(seeded, "metrics", lines_batch(lines, first, last))
        assert answer.status_code == (409 if first * 10 > mark else 200)
        assert answer.json()["offset"] >= mark
        mark = answer.json()["offset"]
    assert mark == len(lines) * 10
    expected: dict[str, list[Any]] = {}
    for n, values in enumerate(lines):
        for name, value in (values or {}).items():
            expected.setdefault(name, []).append([n * 2, n / 1e6, value])
    shown = data_plane.get(f"/jobs/{seeded.job}/metrics", params={"max_points": 1000}).json()["series"]
    assert {series["name"]: series["points"] for series in shown} == expected
    with data_plane.ctx.db.read() as tx:
        skipped = tx.scalar(select(MetricStream.skipped).where(MetricStream.attempt_id == seeded.attempt))
    assert skipped == lines.count(None)


def test_many_senders_of_one_stream_at_once_store_each_point_once(data_plane: Plane) -> None:
    seeded = data_plane.job()

    def send() -> None:
        for start in range(0, 200, 20):
            message = batch(start, range(start, start + 20), a=lambda step: step / 2, b=1.0)
            assert data_plane.post(seeded, "metrics", message).status_code in (200, 409)

    together(send, 4)
    send()
    with data_plane.ctx.db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(MetricPoint)) == 400
        assert tx.scalar(select(func.count()).select_from(MetricSeries)) == 2


def test_new_names_of_many_streams_at_once_get_their_own_series(data_plane: Plane) -> None:
    seeded = data_plane.job()
    numbers = iter(range(8))

    def send() -> None:
        rank = next(numbers)
        message = batch(0, range(5), rank=rank, stream=f"rank-{rank}-1-1", **{f"m{n}": float(rank) for n in range(10)})
        assert data_plane.post(seeded, "metrics", message).status_code == 200

    together(send, 8)
    series = data_plane.get(f"/jobs/{seeded.job}/metrics").json()["series"]
    assert len(series) == 80
    assert all(point[2] == entry["rank"] for entry in series for point in entry["points"])


def test_a_tracker_tells_progress_where_the_job_itself_does_not(data_plane: Plane) -> None:
    seeded = data_plane.job()

    def step() -> int | None:
        with data_plane.ctx.db.read() as tx:
            return tx.scalar(select(Job.step).where(Job.id == seeded.job))

    stream = "tensorboard-rank-0.jsonl"
    data_plane.post(seeded, "metrics", batch(0, [500], stream=stream, loss=1.0))
    data_plane.post(seeded, "metrics", batch(1, [2], stream=stream, accuracy_of_epoch=1.0))
    assert step() == 500
    data_plane.post(seeded, "metrics", batch(0, [40], rank=1, stream="rank-1-1-1", loss=1.0))
    data_plane.post(seeded, "metrics", batch(2, [501], stream=stream, loss=1.0))
    assert step() == 40


def test_the_job_is_where_its_lowest_rank_is(data_plane: Plane) -> None:
    seeded = data_plane.job()

    def progress() -> tuple[int | None, int | None]:
        with data_plane.ctx.db.read() as tx:
            row = tx.execute(select(Job.step, Job.total_steps).where(Job.id == seeded.job)).one()
            return row.step, row.total_steps

    data_plane.post(seeded, "metrics", batch(0, [1, 2, 3], rank=1, stream="rank-1-1-1", total_steps=90, loss=1.0))
    assert progress() == (3, 90)
    data_plane.post(seeded, "metrics", batch(0, [1, 2], total_steps=100, loss=1.0))
    assert progress() == (2, 100)
    data_plane.post(seeded, "metrics", batch(3, [7], rank=1, stream="rank-1-1-1", loss=1.0))
    assert progress() == (2, 100)
    later = data_plane.attempt(seeded.job, resumed_from_step=1)
    data_plane.post(seeded, "metrics", batch(2, [3], loss=1.0))
    assert progress() == (2, 100), "an older attempt does not move the job"
    data_plane.post(later, "metrics", batch(0, [2], loss=1.0))
    assert progress() == (2, 100)


def test_one_bad_record_does_not_block_the_others(data_plane: Plane) -> None:
    seeded = data_plane.job()
    good = json.loads(batch(0, range(6), loss=0.5).model_dump_json())
    good["records"][1][1]["step"] = 2**70
    good["records"][2][1]["values"] = {"loss": "high"}
    good["records"][3] = "garbage"
    good["records"][4][1]["values"] = {"a\0b": 1.0, "x" * 300: 1.0, "\ud800": 1.0, "loss": 2.0}
    good["records"].append([math.inf, good["records"][5][1]])
    answer = data_plane.node.post(f"/api/v1/agent/attempts/{seeded.attempt}/metrics", content=json.dumps(good))
    assert answer.json() == {"offset": 60}
    series = data_plane.get(f"/jobs/{seeded.job}/metrics").json()["series"]
    assert [(entry["name"], [point[0] for point in entry["points"]]) for entry in series] == [("loss", [0, 4, 5])]


def test_a_batch_that_cannot_be_read_is_a_problem(data_plane: Plane) -> None:
    seeded = data_plane.job()
    url = f"/api/v1/agent/attempts/{seeded.attempt}/metrics"
    good = json.loads(batch(0, [1], loss=0.5).model_dump_json())
    bad: list[Any] = [b"", b"{", b"[]", b'{"records": 5}', {**good, "end": -1}, {**good, "stream": "../x"}]
    for body in [*bad, {**good, "rank": -1}, {**good, "offset": 11}]:
        content = body if isinstance(body, bytes) else json.dumps(body)
        answer = data_plane.node.post(url, content=content)
        assert answer.status_code == 422, (body, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
    assert data_plane.node.post(url, content=json.dumps({**good, "node_rank": 1})).status_code == 403
    with data_plane.ctx.db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(MetricPoint)) == 0


def test_numbers_that_json_cannot_say_are_kept(data_plane: Plane) -> None:
    seeded = data_plane.job()
    values = {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1e308, "e": 3}
    raw = json.loads(batch(0, [1], loss=0.5).model_dump_json())
    raw["records"][0][1]["values"] = values
    url = f"/api/v1/agent/attempts/{seeded.attempt}/metrics"
    assert data_plane.node.post(url, content=json.dumps(raw)).status_code == 200
    series = data_plane.get(f"/jobs/{seeded.job}/metrics").json()["series"]
    expected = {"a": "nan", "b": "inf", "c": "-inf", "d": 1e308, "e": 3.0}
    assert {entry["name"]: entry["points"][0][2] for entry in series} == expected


def test_samples_are_stored_once_and_only_for_own_attempts(data_plane: Plane) -> None:
    own, other = data_plane.job(), data_plane.job(node="elsewhere")
    samples = [
        wire.Sample(time_us=n * 2_000_000, attempt=attempt, values={"cpu.percent": float(n)})
        for n in range(5)
        for attempt in (None, own.attempt, other.attempt, "att-unknown")
    ]
    ahead = data_plane.ctx.now_us() + 2 * AHEAD_US
    samples += [wire.Sample(time_us=time_us, values={"cpu.percent": 1.0}) for time_us in (-1, ahead, 2**70)]
    message = wire.SampleBatch(samples=samples).model_dump_json()
    for _ in range(2):
        assert data_plane.node.post("/api/v1/agent/samples", content=message).status_code == 204
    with data_plane.ctx.db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(Sample)) == 10
    series = data_plane.get(f"/jobs/{own.job}/telemetry").json()["series"]
    assert series[0]["points"] == [[n * 2, n * 2.0, float(n)] for n in range(5)]
    assert data_plane.get(f"/jobs/{other.job}/telemetry").json()["series"] == []


def test_a_node_reaches_its_own_attempts_only(data_plane: Plane) -> None:
    other = data_plane.job(node="elsewhere")
    answers: list[httpx.Response] = [
        data_plane.log(other, 0, b"x"),
        data_plane.post(other, "metrics", batch(0, [1], loss=1.0)),
        data_plane.post(other, "claim", wire.Claim(nonce="n")),
        data_plane.post(other, "running", wire.Started(started_us=1)),
        data_plane.post(other, "result", wire.Result(kind=wire.ResultKind.EXITED, exit_code=0, ended_us=1)),
        data_plane.post(other, "outputs", wire.OutputReport(files=[])),
        data_plane.node.post(f"/api/v1/agent/attempts/{other.attempt}/settled"),
        data_plane.node.get(f"/api/v1/agent/attempts/{other.attempt}"),
    ]
    assert {answer.status_code for answer in answers} == {403}
    assert data_plane.node.get("/api/v1/agent/attempts/att-unknown").status_code == 404
    with data_plane.ctx.db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(LogStream)) == 0


def test_only_node_tokens_and_spoken_protocols_reach_the_agent_routes(data_plane: Plane) -> None:
    url = "/api/v1/agent/samples"
    content = wire.SampleBatch(samples=[]).model_dump_json()
    headers = {"Content-Type": "application/json"}
    node = data_plane.node
    assert data_plane.live.client.post(url, content=content, headers=headers).status_code in (403, 426)
    spoken = {**headers, wire.PROTOCOL_HEADER: str(wire.PROTOCOL)}
    assert data_plane.live.client.post(url, content=content, headers=spoken).status_code == 403
    assert data_plane.live.anonymous.post(url, content=content, headers=spoken).status_code == 401
    for version, status in ((wire.PROTOCOL, 204), (wire.PROTOCOL - 1, 204), (wire.PROTOCOL + 1, 426), ("x", 426)):
        answer = node.post(url, content=content, headers={wire.PROTOCOL_HEADER: str(version)})
        assert answer.status_code == status
    assert "upgrade" in answer.json()["detail"]
