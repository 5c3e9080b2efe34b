import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from service.db.models import MetricSeries
from service.telemetry.series import MetricsCursor
from tests.support import disks
from tests.support.attempt import AttemptFolder
from tests.support.plane import Plane, Seeded, batch
from torchyard import wire
from worker.forward.metrics import MetricForwarder


def series(plane: Plane, seeded: Seeded, **params: Any) -> dict[str, Any]:
    answer = plane.get(f"/jobs/{seeded.job}/metrics", params=params)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def steps(body: dict[str, Any]) -> dict[str, list[int]]:
    return {entry["name"]: [point[0] for point in entry["points"]] for entry in body["series"]}


def send(plane: Plane, seeded: Seeded, *arguments: Any, **values: Any) -> None:
    assert plane.post(seeded, "metrics", batch(*arguments, **values)).status_code == 200


def test_names_and_ranks_can_be_chosen(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, 0, [1, 2], loss=1.0, **{"val/acc": 0.5}, lr=0.1)
    send(data_plane, seeded, 0, [1, 2], rank=1, stream="rank-1-1-1", loss=2.0)
    assert [(entry["name"], entry["rank"]) for entry in series(data_plane, seeded)["series"]] == [
        ("loss", 0),
        ("loss", 1),
        ("lr", 0),
        ("val/acc", 0),
    ]
    assert set(steps(series(data_plane, seeded, names="loss,val/acc"))) == {"loss", "val/acc"}
    assert set(steps(series(data_plane, seeded, names=["loss", "lr"]))) == {"loss", "lr"}
    assert [entry["rank"] for entry in series(data_plane, seeded, rank=1)["series"]] == [1]


def test_what_a_later_attempt_does_again_is_left_out(data_plane: Plane) -> None:
    first = data_plane.job()
    send(data_plane, first, 0, range(10), loss=1.0)
    second = data_plane.attempt(first.job, resumed_from_step=6)
    assert steps(series(data_plane, first)) == {"loss": list(range(10))}, "it has not reported yet"
    send(data_plane, second, 0, range(7, 12), loss=2.0)
    body = series(data_plane, first)
    assert steps(body) == {"loss": list(range(12))}
    assert [point[2] for point in body["series"][0]["points"]] == [1.0] * 7 + [2.0] * 5
    third = data_plane.attempt(first.job, resumed_from_step=3)
    send(data_plane, third, 0, [4], loss=3.0)
    assert steps(series(data_plane, first)) == {"loss": [0, 1, 2, 3, 4]}
    fourth = data_plane.attempt(first.job)
    send(data_plane, fourth, 0, [0], loss=4.0)
    assert steps(series(data_plane, first)) == {"loss": [0]}


def test_an_attempt_that_goes_on_by_itself_takes_over_where_it_begins(data_plane: Plane) -> None:
    first = data_plane.job()
    send(data_plane, first, 0, range(10), loss=1.0)
    second = data_plane.attempt(first.job)
    send(data_plane, second, 0, range(6, 12), loss=2.0)
    body = series(data_plane, first)
    assert steps(body) == {"loss": list(range(12))}
    assert [point[2] for point in body["series"][0]["points"]] == [1.0] * 6 + [2.0] * 6


def test_each_curve_is_taken_over_where_it_begins_itself(data_plane: Plane) -> None:
    """A tracker's counter may begin anew where the training does not."""
    first = data_plane.job()
    send(data_plane, first, 0, range(10), loss=1.0, counted=1.0, once=1.0)
    second = data_plane.attempt(first.job)
    send(data_plane, second, 0, range(6, 12), loss=2.0)
    send(data_plane, second, 0, range(2), stream="wandb-rank-0.jsonl", counted=2.0)
    assert steps(series(data_plane, first)) == {
        "counted": [0, 1],
        "loss": list(range(12)),
        "once": list(range(10)),
    }


def test_what_is_logged_twice_is_one_curve(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, 0, [1, 2], stream="wandb-rank-0.jsonl", loss=3.0, acc=3.0)
    send(data_plane, seeded, 0, [1, 2], stream="tensorboard-rank-0.jsonl", loss=2.0, acc=2.0)
    assert [point[2] for point in series(data_plane, seeded)["series"][1]["points"]] == [2.0, 2.0]
    send(data_plane, seeded, 0, [1, 2], loss=1.0)
    body = series(data_plane, seeded)
    assert steps(body) == {"acc": [1, 2], "loss": [1, 2]}
    assert [point[2] for entry in body["series"] for point in entry["points"]] == [2.0, 2.0, 1.0, 1.0]


def test_a_cursor_brings_only_what_is_newer(data_plane: Plane) -> None:
    seeded = data_plane.job()
    empty = series(data_plane, seeded)
    assert (empty["series"], empty["reset"]) == ([], True)
    send(data_plane, seeded, 0, range(5), loss=1.0)
    body = series(data_plane, seeded, since=empty["cursor"])
    assert (steps(body), body["reset"]) == ({"loss": [0, 1, 2, 3, 4]}, True)
    send(data_plane, seeded, 5, [5, 6], loss=1.0, acc=0.5)
    send(data_plane, seeded, 0, [1], rank=1, stream="rank-1-1-1", loss=1.0)
    body = series(data_plane, seeded, since=body["cursor"])
    assert [(e["name"], e["rank"], [p[0] for p in e["points"]]) for e in body["series"]] == [
        ("acc", 0, [5, 6]),
        ("loss", 0, [5, 6]),
        ("loss", 1, [1]),
    ]
    assert not body["reset"]
    assert series(data_plane, seeded, since=body["cursor"])["series"] == []


def test_a_cursor_from_before_a_resume_brings_everything_anew(data_plane: Plane) -> None:
    first = data_plane.job()
    send(data_plane, first, 0, range(5), loss=1.0)
    cursor = series(data_plane, first)["cursor"]
    second = data_plane.attempt(first.job, resumed_from_step=2)
    send(data_plane, second, 0, [3], loss=2.0)
    body = series(data_plane, first, since=cursor)
    assert (steps(body), body["reset"]) == ({"loss": [0, 1, 2, 3]}, True)


def test_a_strange_cursor_is_a_problem_or_brings_something(data_plane: Plane) -> None:
    seeded = data_plane.job()
    for since in ("x", "!!!", "AAAA", "~" * 20):
        answer = data_plane.get(f"/jobs/{seeded.job}/metrics", params={"since": since})
        assert answer.status_code in (200, 422)
        if answer.status_code == 422:
            assert answer.json()["errors"][0]["field"] == "since"


def test_peaks_survive_downsampling(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, 0, range(3000), loss=lambda step: {777: 99.0, 2222: "nan"}.get(step, step % 7 / 7))
    points = series(data_plane, seeded, max_points=100)["series"][0]["points"]
    assert len(points) <= 100
    assert [point for point in points if point[2] in (99.0, "nan")] == [[777, 777.0, 99.0], [2222, 2222.0, "nan"]]
    assert (points[0][0], points[-1][0]) == (0, 2999)


def test_unchanged_metrics_are_not_sent_again(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, 0, [1], loss=1.0)
    tag = data_plane.get(f"/jobs/{seeded.job}/metrics").headers["etag"]
    assert data_plane.get(f"/jobs/{seeded.job}/metrics", headers={"If-None-Match": tag}).status_code == 304
    send(data_plane, seeded, 1, [2], loss=1.0)
    assert data_plane.get(f"/jobs/{seeded.job}/metrics", headers={"If-None-Match": tag}).status_code == 200


def test_unknown_jobs_and_bad_parameters_are_problems(data_plane: Plane) -> None:
    seeded = data_plane.job()
    for path in ("metrics", "telemetry"):
        assert data_plane.get(f"/jobs/job-none/{path}").status_code == 404
        assert data_plane.get(f"/jobs/{seeded.job}/{path}", params={"max_points": 1}).status_code == 422
        assert data_plane.live.anonymous.get(f"/api/v1/jobs/{seeded.job}/{path}").status_code == 401
    assert data_plane.get(f"/jobs/{seeded.job}/telemetry", params={"since": "x"}).status_code == 422
    send(data_plane, seeded, 0, [1], loss=1.0)
    (stream,) = MetricsCursor.parse(series(data_plane, seeded)["cursor"]).marks
    for cursor in (MetricsCursor(1, {stream: 2**66}), MetricsCursor(2**66, {})):
        assert data_plane.get(f"/jobs/{seeded.job}/metrics", params={"since": str(cursor)}).status_code == 422


def lost(plane: Plane, seeded: Seeded) -> int:
    return int(plane.get(f"/jobs/{seeded.job}/attempts").json()[-1]["dropped_records"])


def test_gaps_in_the_numbers_of_lines_are_lost_records(data_plane: Plane) -> None:
    seeded = data_plane.job()
    first = batch(0, [0, 1, 2], loss=1.0).model_copy(update={"taken": 3})
    second = batch(10, [10, 11], loss=1.0, offset=30, end=60, skipped=1).model_copy(update={"taken": 12})
    tail = wire.MetricBatch(node_rank=0, stream="rank-0-1-1", rank=0, offset=60, end=60, records=[], taken=20)
    for message, expected in ((first, 0), (first, 0), (second, 7), (second, 7), (tail, 15), (tail, 15)):
        assert data_plane.post(seeded, "metrics", message).status_code == 200
        assert lost(data_plane, seeded) == expected
    other = batch(0, [0], stream="rank-1-1-1", rank=1, loss=1.0, skipped=2)
    assert data_plane.post(seeded, "metrics", other).status_code == 200
    assert lost(data_plane, seeded) == 17, "an older agent counts lines that cannot be read"


def test_a_number_that_does_not_go_on_from_those_before_is_skipped_and_told(data_plane: Plane) -> None:
    seeded = data_plane.job()
    first = batch(0, [0, 1, 2], loss=1.0, offset=0, end=30)
    again = batch(1, [10, 11, 12], loss=2.0, offset=30, end=60)
    twice = batch(4, [13, 14], loss=3.0, offset=60, end=80)
    twice = twice.model_copy(update={"records": [twice.records[0], *twice.records]})
    for each in (first, again, twice):
        taken = each.records[-1][0] + 1
        assert data_plane.post(seeded, "metrics", each.model_copy(update={"taken": taken})).json()["offset"] == each.end
    assert steps(series(data_plane, seeded)) == {"loss": [0, 1, 2, 12, 13, 14]}
    assert lost(data_plane, seeded) == 3


def test_lines_that_are_sent_again_are_neither_doubled_nor_skipped(data_plane: Plane) -> None:
    seeded = data_plane.job()
    for count in (3, 5):
        each = batch(0, range(count), loss=1.0, offset=0, end=10 * count).model_copy(update={"taken": count})
        assert data_plane.post(seeded, "metrics", each).status_code == 200
    assert steps(series(data_plane, seeded)) == {"loss": [0, 1, 2, 3, 4]}
    assert lost(data_plane, seeded) == 0
    with data_plane.ctx.db.read() as tx:
        assert tx.scalar(select(MetricSeries.unrolled)) == 5


def test_what_was_lost_before_it_was_counted_is_not_guessed(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, 0, range(5), loss=1.0)
    later = batch(9, [9, 11], loss=1.0, offset=50, end=70).model_copy(update={"taken": 12})
    later = later.model_copy(update={"records": [(9, later.records[0][1]), (11, later.records[1][1])]})
    assert data_plane.post(seeded, "metrics", later).status_code == 200
    assert lost(data_plane, seeded) == 1


FILLS_THE_DISK = """
import os, sys, torchyard
from torchyard.injob import metrics
for step in range(100):
    torchyard.report(step=step, loss=1.0)
metrics._recorder.flush()
full = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
try:
    while os.write(full, bytes(4096)): pass
except OSError: pass
for step in range(100, 3000):
    torchyard.report(step=step, loss=1.0)
metrics._recorder.flush()
if sys.argv[2] == "freed":
    os.ftruncate(full, 0)
    for step in range(3000, 3010):
        torchyard.report(step=step, loss=1.0)
"""


@pytest.mark.parametrize("end", ["freed", "full"])
def test_every_record_that_a_full_disk_dropped_is_told(data_plane: Plane, tmp_path: Path, end: str) -> None:
    class Sink:
        def metrics(self, _attempt: str, batch: wire.MetricBatch) -> int:
            answer = data_plane.post(seeded, "metrics", batch).raise_for_status()
            return wire.Mark.model_validate_json(answer.content).offset

    seeded = data_plane.job()
    with disks.small(tmp_path / "disk", 1) as disk:
        folder = AttemptFolder(disk / "attempt")
        command = [sys.executable, "-c", FILLS_THE_DISK, str(disk / "full"), end]
        subprocess.run(command, env={**os.environ, **folder.environment()}, check=True, capture_output=True)
        pump = MetricForwarder(Sink(), seeded.attempt, folder.root, node_rank=0, owner=os.getuid(), fresh=True)
        while pump.pump(ended=True):
            pass
    taken = 3010 if end == "freed" else 3000
    stored = len(series(data_plane, seeded, max_points=10_000)["series"][0]["points"])
    assert 100 <= stored < taken
    assert lost(data_plane, seeded) == taken - stored


def test_a_range_is_told_in_buckets_until_its_points_fit(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, 0, range(3000), loss=lambda step: {777: 99.0, 2222: "nan"}.get(step, step % 7), lr=0.1)
    send(data_plane, seeded, 0, [5], stream="rank-1-1-1", rank=1, loss=1.0)
    long, short, rate = series(data_plane, seeded, buckets=100)["series"]
    buckets = long["buckets"]
    assert len(buckets["count"]) == 100
    assert sum(buckets["count"]) == 2999
    assert long["points"] == [[2222, 2222.0, "nan"]]
    assert max(buckets["max"]) == 99.0
    assert (buckets["first_step"], buckets["last_time"]) == (
        rate["buckets"]["first_step"],
        rate["buckets"]["last_time"],
    )
    assert (short["points"], short["buckets"]) == ([[5, 0.0, 1.0]], None)
    for axis in ("step", "time"):
        within = {"buckets": 100, "axis": axis, "names": "loss", "rank": 0}
        wide = series(data_plane, seeded, start=700.5, end=900, **within)["series"][0]
        assert (wide["points"], sum(wide["buckets"]["count"])) == ([], 200)
        assert (wide["buckets"]["first_step"][0], wide["buckets"]["last_step"][-1]) == (701, 900)
        narrow = series(data_plane, seeded, start=770, end=780, **within)["series"][0]
        assert narrow["buckets"] is None
        assert [point[2] for point in narrow["points"]] == [0, 1, 2, 3, 4, 5, 6, 99.0, 1, 2, 3]
    assert series(data_plane, seeded, start=4000, buckets=100)["series"] == []
    assert series(data_plane, seeded, end=1e300, buckets=100, names="lr")["series"][0]["buckets"]["count"][0] == 30


def test_a_range_is_no_place_to_go_on_from(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, 0, range(20), loss=1.0)
    cursor = series(data_plane, seeded, start=10)["cursor"]
    body = series(data_plane, seeded, since=cursor)
    assert steps(body) == {"loss": list(range(20))}
    answer = data_plane.get(f"/jobs/{seeded.job}/metrics", params={"since": cursor, "start": 1})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "since"


def test_newer_points_follow_buckets(data_plane: Plane) -> None:
    seeded = data_plane.job()
    send(data_plane, seeded, 0, range(100), loss=1.0)
    body = series(data_plane, seeded, buckets=10)
    send(data_plane, seeded, 100, [100, 101], loss=2.0)
    newer = series(data_plane, seeded, buckets=10, since=body["cursor"])
    assert [(one["points"], one["buckets"]) for one in newer["series"]] == [
        ([[100, 100.0, 2.0], [101, 101.0, 2.0]], None)
    ]
    assert not newer["reset"]


def progress(plane: Plane, seeded: Seeded) -> dict[str, Any] | None:
    found: dict[str, Any] | None = plane.get(f"/jobs/{seeded.job}").json()["progress"]
    return found


def prints(plane: Plane, seeded: Seeded, start: int, steps: list[int], total: int | None, **values: Any) -> None:
    message = batch(start, steps, stream="printed-rank-0.jsonl", total_steps=total, **(values or {"progress": 10.0}))
    assert plane.post(seeded, "metrics", message).status_code == 200


def test_printed_progress_counts_where_none_is_reported(data_plane: Plane) -> None:
    seeded = data_plane.job()
    prints(data_plane, seeded, 0, [10, 20], 500)
    assert progress(data_plane, seeded) == {"source": "printed", "step": 20, "total_steps": 500, "eta_s": None}
    assert data_plane.get(f"/jobs/{seeded.job}").json()["latest"] == {}
    send(data_plane, seeded, 0, [3], stream="tensorboard-rank-0.jsonl", loss=1.0)
    assert progress(data_plane, seeded) == {"source": "printed", "step": 20, "total_steps": 500, "eta_s": None}
    send(data_plane, seeded, 0, [7], total_steps=80, loss=1.0)
    prints(data_plane, seeded, 2, [30], 500)
    assert progress(data_plane, seeded) == {"source": "reported", "step": 7, "total_steps": 80, "eta_s": None}


def test_a_job_that_has_succeeded_shows_no_share_that_it_printed(data_plane: Plane) -> None:
    seeded = data_plane.job()
    prints(data_plane, seeded, 0, [2], 3)
    data_plane.set_state(seeded, "succeeded", settled=True)
    assert progress(data_plane, seeded) is None


def test_printed_progress_that_is_not_the_runs_is_taken_back(data_plane: Plane) -> None:
    seeded = data_plane.job()
    prints(data_plane, seeded, 0, [10, 100], 100)
    prints(data_plane, seeded, 2, [100], None, progress="nan")
    assert progress(data_plane, seeded) is None
    send(data_plane, seeded, 0, [3], stream="tensorboard-rank-0.jsonl", loss=1.0)
    assert progress(data_plane, seeded) == {"source": "tracker", "step": 3, "total_steps": None, "eta_s": None}
