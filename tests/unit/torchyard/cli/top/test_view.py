"""Pictures of `yard top`: they fill the terminal, steer nothing, and claim nothing that is not known."""

import io
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console, Group

from torchyard.api import IdleDevices, Job, Node, NodeDevice, QueueEntry
from torchyard.cli.top import view
from torchyard.cli.top.snapshot import BoxSnapshot, LogTail, Selection
from torchyard.spec import JobSpec

AT = datetime.fromisoformat("2026-01-05T21:05:00+00:00")
SIZES = [(80, 24), (120, 40)]
HOSTILE = "x[/b]\x1b[2J\r\n\u202e\tend"
HOLDER = {"job": "job-7", "job_number": 7, "job_name": "net", "user": "ada", "share": None}


def device(index: int, *, held: bool = False, **values: Any) -> NodeDevice:
    holders = [{**HOLDER, **{name: values.pop(name) for name in list(values) if name in HOLDER}}] if held else []
    basic = dict.fromkeys(NodeDevice.model_fields) | {"uuid": f"u{index}", "index": index, "kind": "gpu"}
    basic |= {"name": "NVIDIA H200", "memory": 141 * 10**9, "holders": holders, "job": "job-7" if held else None}
    return NodeDevice.model_validate(basic | values)


def node(*devices: NodeDevice, **values: Any) -> Node:
    basic: dict[str, Any] = {"name": "box", "state": "online", "hostname": "box", "version": "1", "last_seen_at": AT}
    basic |= {"cpus": 64, "memory": 10**12, "disk_free": 10**12}
    return Node.model_validate(basic | {"devices": list(devices), "latest": {}} | values)


def job(number: int, **values: Any) -> Job:
    basic = dict.fromkeys(Job.model_fields) | {"id": f"job-{number}", "number": number, "name": "net", "user": "ada"}
    basic |= {"project": "default", "state": "running", "held": False, "priority": "normal", "tags": [], "version": 1}
    basic |= {"created_at": AT, "started_at": AT - timedelta(minutes=5), "attempt": 1, "gpus": 1, "devices": []}
    basic |= {"latest": {}, "storage": {"checkpoints": 0, "outputs": 0, "logs": 0}, "blocked": False}
    basic |= {"inexact_parts": [], "unsaved_parts": [], "ran_s": 0.0, "running_since": AT - timedelta(minutes=5)}
    work = JobSpec.model_validate({"command": ["train.py"]}).model_dump(mode="json")
    return Job.model_validate(basic | {"spec": work} | values)


def entry(number: int, **values: Any) -> QueueEntry:
    basic = {"position": 1, "job": f"job-{number}", "number": number, "name": "net", "user": "bob", "gpus": 2}
    basic |= {"priority": "normal", "held": False, "reason": "2 GPUs are free and the job needs 4"}
    return QueueEntry.model_validate(basic | values)


def snapshot(
    *nodes: Node, jobs: list[Job] | None = None, queue: list[QueueEntry] | None = None, log: LogTail | None = None
) -> BoxSnapshot:
    return BoxSnapshot(at=AT, nodes=nodes, jobs=jobs or [], queue=queue or [], log=log)


def drawn(seen: BoxSnapshot, size: tuple[int, int], place: int = 0, *, away: bool = False) -> list[str]:
    """The picture as a terminal of that size gets it, line by line."""
    width, height = size
    choice = Selection(place=place).among(seen.rows)
    file = io.StringIO()
    console = Console(file=file, width=width, height=height, markup=False, emoji=False, highlight=False)
    console.print(Group(*view.picture(seen, choice, away=away, width=width, height=height)))
    lines = file.getvalue().removesuffix("\n").split("\n")
    assert len(lines) == height
    assert max(map(cell_len, lines)) <= width
    return lines


@pytest.mark.parametrize("size", SIZES)
def test_a_picture_has_the_box_the_jobs_and_the_log(size: tuple[int, int]) -> None:
    running = job(7, progress={"step": 120, "total_steps": 500, "eta_s": 300}, latest={"loss": 0.5})
    waiting = entry(8, expected_start_at=AT + timedelta(hours=2), reason="till 2026-11-25 22:15 UTC")
    log = LogTail(job="job-7", data=b"step 1\n 10%|#\r 20%|##\r\nstep 2")
    box = node(device(0, held=True, utilization=93.0, memory_used=70 * 10**9), device(1))
    lines = drawn(snapshot(box, jobs=[running], queue=[waiting], log=log), size)
    assert "1 running, 1 waiting" in lines[0]
    assert lines[1].startswith("box online  1 of 2 free")
    assert "93%" in lines[2]
    assert "7 net" in lines[2]
    assert "ada" in lines[2]
    assert "free" in lines[3]
    chosen, queued = lines[5:7]
    assert chosen.startswith("> 7")
    assert "5m" in chosen
    assert "120/500 (24%)" in chosen
    assert "queued" in queued
    assert "in 2h" in queued
    assert lines[7].startswith("log of 7 net, rank 0")
    assert "UTC" not in queued, "times are on the local clock"
    assert [line.rstrip() for line in lines[8:11]] == ["step 1", " 20%|##", "step 2"]
    assert "q leave" in lines[-1]


@pytest.mark.parametrize("size", [*SIZES, (20, 5), (1, 1)])
def test_foreign_text_takes_one_line_and_steers_nothing(size: tuple[int, int]) -> None:
    box = node(device(0, held=True, job_name=HOSTILE, user=HOSTILE), name=HOSTILE, offenders=[HOSTILE])
    running = job(7, name=HOSTILE, user=HOSTILE, latest={HOSTILE: 0.5})
    waiting = entry(8, name=HOSTILE, user=HOSTILE, reason=HOSTILE)
    log = LogTail(job="job-7", data=b"\xff\x1b[2J\x1b]0;t\x07" + HOSTILE.encode())
    lines = drawn(snapshot(box, jobs=[running], queue=[waiting], log=log), size)
    assert not set("".join(lines)) & set("\x1b\r\t\x07\u202e")
    if size in SIZES:
        assert any("x[/b]" in line for line in lines[4:6])


@pytest.mark.parametrize("size", SIZES)
def test_an_empty_box_says_what_to_do(size: tuple[int, int]) -> None:
    lines = drawn(snapshot(), size)
    assert "no node has registered: `yard up`" in lines[1]
    assert any("no jobs: `yard run" in line for line in lines)


@pytest.mark.parametrize("size", SIZES)
def test_the_chosen_of_many_jobs_is_in_sight(size: tuple[int, int]) -> None:
    seen = snapshot(node(device(0)), jobs=[job(n) for n in range(40, 0, -1)], queue=[entry(n) for n in range(50, 99)])
    for place, number in ((0, 40), (39, 1), (40, 50), (88, 98)):
        lines = drawn(seen, size, place)
        assert [line.split()[1] for line in lines if line.startswith("> ")] == [str(number)]
        assert "of 89" in lines[-1]


def test_a_free_device_says_why_it_is_idle() -> None:
    why = {"node": "box", "code": "kept", "job": 8, "until": None, "message": "kept for job 8 net until 21:30"}
    idle = [IdleDevices.model_validate({**why, "devices": [1]}), IdleDevices.model_validate({**why, "devices": [0]})]
    seen = replace(snapshot(node(device(0, held=True), device(1), device(2)), node(device(1), name="other")), idle=idle)
    of_box, other = (drawn(seen, (120, 40))[at : at + 4] for at in (1, 5))
    assert "7 net" in of_box[1], "who has a device since then has it"
    assert of_box[2].rstrip().endswith("idle: kept for job 8 net until 21:30")
    assert of_box[3].rstrip().endswith("free")
    assert other[1].rstrip().endswith("free"), "the reason is another node's"
    assert all(cell_len(line) <= 80 for line in drawn(seen, (80, 24)))


@pytest.mark.parametrize("size", SIZES)
def test_free_devices_make_room_for_held_ones(size: tuple[int, int]) -> None:
    devices = [device(at, held=at == 60) for at in range(64)]
    lines = drawn(snapshot(node(*devices), jobs=[job(7)]), size)
    assert any(line.startswith("gpu 60") and "7 net" in line for line in lines)
    (more,) = [line for line in lines if line.startswith("and ")]
    assert " of them free" in more
    assert any(line.startswith("log of 7") for line in lines)


def test_what_is_not_known_is_no_zero() -> None:
    measured = device(0, utilization=93.0, memory_used=70 * 10**9)
    for box in (node(device(0)), node(measured, state="unreachable", last_seen_at=AT - timedelta(minutes=4))):
        (line,) = [line for line in drawn(snapshot(box), (80, 24)) if line.startswith("gpu 0")]
        assert "%" not in line
        assert " of " not in line
    assert "unreachable, seen 4m ago" in drawn(snapshot(box), (80, 24))[1]


def test_a_node_in_maintenance_says_so_without_an_id() -> None:
    box = node(device(0), state="draining", maintenance="0f3a9c4e-7b1d-4c55-9a10-2f6f4a8d7e21")
    picture = "\n".join(drawn(snapshot(box), (100, 30)))
    assert "draining for maintenance" in picture
    assert "0f3a9c4e" not in picture


def test_the_last_picture_stays_grey_while_the_service_is_away() -> None:
    seen = snapshot(node(device(0, held=True)), jobs=[job(7)])
    here, away = drawn(seen, (80, 24)), drawn(seen, (80, 24), away=True)
    assert away[1:] == here[1:]
    assert f"reconnecting, data from {AT.astimezone():%H:%M}" in away[0]
    lines = view.picture(seen, Selection().among(seen.rows), away=True, width=80, height=24)
    console = Console(file=io.StringIO(), width=80, color_system="standard", force_terminal=True)
    shown = [segment for line in lines[1:-1] for segment in console.render(line) if segment.text.strip()]
    assert shown
    assert {segment.style.color for segment in shown if segment.style} == {view.AWAY.color}


def test_a_log_of_another_job_is_not_shown_as_the_chosen_ones() -> None:
    seen = snapshot(node(), jobs=[job(7), job(6)], log=LogTail(job="job-7", data=b"of seven"))
    assert "of seven" in "".join(drawn(seen, (80, 24)))
    assert "of seven" not in "".join(drawn(seen, (80, 24), place=1))


def test_a_job_that_waits_shows_why() -> None:
    lines = drawn(snapshot(node(), queue=[entry(8)]), (80, 24))
    heading = next(at for at, line in enumerate(lines) if line.startswith("job 8 net waits"))
    assert lines[heading + 1].startswith("2 GPUs are free and the job needs 4")
