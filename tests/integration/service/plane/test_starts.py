"""What a node tells of an attempt's start is kept, added to, and shown stage by stage."""

from typing import Any

from tests.support.plane import Plane, Seeded
from torchyard import wire
from torchyard.ids import now_us


def stages(plane: Plane, seeded: Seeded) -> list[str]:
    (start,) = plane.get(f"/jobs/{seeded.job}/timing").json()
    return [stage["name"] for stage in start["stages"]]


def told(**fields: Any) -> wire.NodeStart:
    return wire.NodeStart(heard_us=now_us(), published_us=now_us(), **fields)


def test_a_start_is_told_with_the_first_instruction_and_again_with_more(data_plane: Plane) -> None:
    seeded = data_plane.job(state="starting")
    early = told(marks={"started": 50_000}, warm=False, cold_reason="no server")
    started = wire.Started(started_us=now_us(), start=early)
    assert data_plane.post(seeded, "running", started).status_code == 204
    assert stages(data_plane, seeded)[-1] == "fork"
    later = early.model_copy(update={"marks": {**early.marks, wire.StartMark.TORCH: 90_000}})
    assert data_plane.post(seeded, "start", later).status_code == 204
    assert stages(data_plane, seeded)[-1] == "imports"
    (shown,) = data_plane.get(f"/jobs/{seeded.job}/timing").json()
    assert (shown["attempt"], shown["warm"], shown["cold_reason"]) == (1, False, "no server")


def test_a_short_job_tells_it_with_its_result(data_plane: Plane) -> None:
    seeded = data_plane.job(state="starting")
    result = wire.Result(
        kind=wire.ResultKind.EXITED, exit_code=0, started_us=5, ended_us=6, start=told(marks={"started": 9})
    )
    assert data_plane.post(seeded, "result", result).status_code == 204
    assert stages(data_plane, seeded)[-1] == "fork"


def test_marks_of_a_newer_node_are_passed_over(data_plane: Plane) -> None:
    seeded = data_plane.job(state="starting")
    later = {"heard_us": now_us(), "marks": {"started": 5, "first-breath": 7, "torch": "soon"}, "mood": "good"}
    answer = data_plane.node.post(f"/api/v1/agent/attempts/{seeded.attempt}/start", json=later)
    assert answer.status_code == 204
    assert stages(data_plane, seeded)[-1] == "fork"


def test_the_first_report_is_the_first_point_of_any_series(data_plane: Plane) -> None:
    seeded = data_plane.job(state="starting")
    start = told(marks={"started": 50_000})
    assert data_plane.post(seeded, "start", start).status_code == 204
    records = [
        [0, {"step": 0, "time_us": start.heard_us + 80_000, "values": {"loss": 1.0}}],
        [1, {"step": 1, "time_us": start.heard_us + 99_000, "values": {"loss": 0.5, "late": 1.0}}],
    ]
    batch = {"node_rank": 0, "stream": "a", "rank": 0, "offset": 0, "end": 2, "records": records}
    answer = data_plane.node.post(f"/api/v1/agent/attempts/{seeded.attempt}/metrics", json=batch)
    assert answer.status_code == 200, answer.text
    (shown,) = data_plane.get(f"/jobs/{seeded.job}/timing").json()
    assert (shown["stages"][-1]["name"], shown["stages"][-1]["ms"]) == ("first report", 30.0)
