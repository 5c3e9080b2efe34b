"""Stacks from the asking to the reader."""

from sqlalchemy import select

from service.db.models import Attempt, Stacks
from service.telemetry import stacks
from tests.support.plane import Plane, Seeded
from torchyard import home, wire
from torchyard.client.client import Client

FRAMES = [
    wire.Frame(function="c10d::Work::wait", file="libtorch_cpu.so", line=0, native=True),
    wire.Frame(function="all_reduce", file="torch/distributed/distributed_c10d.py", line=3913),
    wire.Frame(function="main\0", file="/code/train.py", line=88),
]
WAITS = wire.ProcessStack(
    pid=8,
    rank=0,
    main=True,
    command="python train.py",
    threads=[wire.ThreadStack(name="MainThread", frames=FRAMES)],
    collective="all_reduce",
    place="train.py:88",
)


def asked(plane: Plane, seeded: Seeded) -> list[wire.DumpOrder]:
    """What the node is asked for with its next heartbeat."""
    identity = wire.Identity(node_id="machine", home_id="home", boot_id="boot", pid_namespace="1")
    report = wire.AttemptReport(attempt=seeded.attempt, phase=wire.Phase.RUNNING, started_us=5)
    message = wire.Heartbeat(identity=identity, devices=[], attempts=[report], disk_free=2**40)
    answer = plane.node.post("/api/v1/agent/heartbeat", content=message.model_dump_json())
    return wire.Orders.model_validate_json(answer.raise_for_status().content).dumps


def send(plane: Plane, seeded: Seeded, serial: int, *processes: wire.ProcessStack) -> int:
    dump = wire.StackDump(serial=serial, at_us=1, processes=list(processes))
    return plane.post(seeded, "stacks", dump).status_code


def told(client: Client, seeded: Seeded) -> list[str]:
    return [event.message for event in client.events(seeded.job) if event.kind == "stacks"]


def test_stacks_that_are_asked_for_come_once(data_plane: Plane) -> None:
    seeded, live = data_plane.job(), data_plane.live
    assert asked(data_plane, seeded) == []
    with Client(live.url, live.admin_token) as client:
        assert client.stacks(seeded.job) == []
        client.ask_for_stacks(seeded.job)
        assert asked(data_plane, seeded) == [wire.DumpOrder(attempt=seeded.attempt, serial=1)]
        assert [send(data_plane, seeded, 1, WAITS) for _ in range(2)] == [204, 204]
        assert asked(data_plane, seeded) == []
        (found,) = client.stacks(seeded.job)
        assert told(client, seeded) == ["rank 0 waits in all_reduce (train.py:88)"]
    assert (found.node, found.serial, found.attempt) == (home.node_name(), 1, 1)
    assert found.summary == "rank 0 waits in all_reduce (train.py:88)"
    assert [frame.function for frame in found.processes[0].threads[0].frames][-1] == "main\ufffd"


def test_what_was_not_asked_for_is_not_stored_and_old_ones_go(data_plane: Plane) -> None:
    seeded = data_plane.job()
    with data_plane.ctx.db.write() as tx:
        tx.execute(Attempt.__table__.update().values(dump_serial=9))
    for serial in (0, 2**62, *range(1, 10)):
        assert send(data_plane, seeded, serial, WAITS) == 204
    with data_plane.ctx.db.read() as tx:
        stored = list(tx.scalars(select(Stacks.serial).order_by(Stacks.serial)))
    assert stored == list(range(10 - stacks.KEEP, 10))


def test_too_large_a_dump_is_refused(data_plane: Plane) -> None:
    seeded = data_plane.job()
    frames = [wire.Frame(function="f" * 1000, file="x", line=1)] * 2500
    large = WAITS.model_copy(update={"threads": [wire.ThreadStack(frames=frames)]})
    assert send(data_plane, seeded, 1, large) == 413


def test_other_nodes_stacks_are_not_taken_and_only_running_jobs_have_some(data_plane: Plane) -> None:
    assert send(data_plane, data_plane.job(node="elsewhere"), 1, WAITS) == 403
    waiting = data_plane.job(state="assigned")
    answer = data_plane.live.client.post(f"/api/v1/jobs/{waiting.job}/stacks")
    assert (answer.status_code, "only a running job has stacks" in answer.text) == (409, True)
