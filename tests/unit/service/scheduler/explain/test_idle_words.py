"""Why devices are idle, in words, with the line that would change it."""

from dataclasses import replace

from service.scheduler.explain import idle_words
from service.scheduler.explain.idle import NodeIdleDevices
from service.scheduler.explain.names import Names, Title
from service.scheduler.model.jobs import ReservationInfo
from service.scheduler.model.nodes import ClosedReason
from tests.unit.service.scheduler.worlds import HOUR, NOW, job, node_info, running, state
from torchyard.api import IdleReason

NAMES = Names(jobs={"j1": Title(number=12, user="ann"), "r1": Title(number=7, user="bob")})


def test_for_whom_until_when_and_the_line() -> None:
    world = state(node_info(gpus=2), running(1, "a0"), job(1, gpus=2))
    kept = NodeIdleDevices(
        node="a", uuids=("a1",), reason=IdleReason.KEPT, job="j1", until_us=NOW + HOUR, unstoppable=("r1",)
    )
    assert idle_words.mentioned([kept]) == ["j1", "r1"]
    said = idle_words.tell(world, NAMES, kept).message
    assert said.startswith(
        "kept for job 12 (ann), which needs 2 GPUs and can start at about 2023-11-14 23:13 UTC; job 7 (bob) cannot be "
        "stopped, since it has written no checkpoint that was verified: "
    )
    assert "torchyard.attach" in said
    assert "--set restartable=true" in said


def test_the_built_in_trainer_is_not_told_to_attach() -> None:
    world = state(node_info(gpus=3), running(1, "a0", recipe=True), running(2, "a1"), job(1, gpus=3))
    few = NodeIdleDevices(node="a", uuids=("a2",), reason=IdleReason.TOO_FEW, job="j1", unstoppable=("r1",))
    said = idle_words.tell(world, NAMES, few).message
    assert "the built-in trainer writes one by itself, and at once for `yard checkpoint JOB`, and a job that" in said
    assert "torchyard.attach" not in said
    both = idle_words.tell(world, NAMES, replace(few, unstoppable=("r1", "r2"))).message
    assert "torchyard.attach" in both
    assert "the built-in trainer" in both


def test_one_that_refuses_is_told_by_its_line() -> None:
    world = state(node_info(gpus=2), running(1, "a0", pinned=True), job(1, gpus=2))
    few = NodeIdleDevices(node="a", uuids=("a1",), reason=IdleReason.TOO_FEW, job="j1", unstoppable=("r1",))
    assert idle_words.tell(world, NAMES, few).message == (
        "too few for job 12 (ann), which needs 2 GPUs; job 7 (bob) cannot be stopped, since it says "
        "`preemptible: false`: without that line a job can be stopped once it has a checkpoint"
    )
    bob = {"jobs": [{"number": 7, "user": "bob"}], "more": 0}
    assert idle_words.tell(world, NAMES, few).params == {
        "jobs": [{"number": 12, "user": "ann"}],
        "more": 0,
        "needed": 2,
        "units": ["gpu"],
        "nodes": 1,
        "unstoppable": [{"pinned": True, **bob}],
    }


def test_a_node_that_drains() -> None:
    world = state(node_info(closed=ClosedReason.DRAINING))
    closed = NodeIdleDevices(node="a", uuids=("a0",), reason=IdleReason.CLOSED)
    assert idle_words.tell(world, NAMES, closed).message == (
        "its node is draining: it takes no new jobs until an administrator resumes it"
    )
    assert idle_words.tell(world, NAMES, closed).params == {"closed": "draining"}


def test_a_reservation_is_told_with_its_begin_which_may_be_to_come() -> None:
    begin = NOW + HOUR + 30_000_000  # late in the minute that is told
    coming = ReservationInfo(id="res", name="demo", starts_us=begin, ends_us=begin + HOUR, gpus=1)
    world = state(node_info(gpus=1), coming)
    reserved = NodeIdleDevices(node="a", uuids=("a0",), reason=IdleReason.RESERVED, reservation="res")
    assert idle_words.tell(world, NAMES, reserved).message == (
        "reserved from 2023-11-14 23:13 UTC to 2023-11-15 00:13 UTC (demo)"
    )
    assert idle_words.tell(world, NAMES, replace(reserved, reservation="gone")).message == "reserved"
