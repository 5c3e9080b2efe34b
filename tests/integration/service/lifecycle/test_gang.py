"""Attempts on several nodes: their parts come one by one, in any order, and count together."""

from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import pytest
from sqlalchemy import select

from service import lifecycle
from service.db.engine import Database
from service.db.models import Allocation, Event, Member
from service.nodes import heartbeats, registration
from tests.integration.service.lifecycle.test_rivals import meet
from tests.support import box
from tests.support.box import NOW
from torchyard import wire
from torchyard.states import AttemptState, JobState, StopReason
from torchyard.wire import Action, Go, Prepared, Result, ResultKind

NODES = ("a", "b")
WHERE = {"a": Prepared(address="10.0.0.1", port=20001), "b": Prepared(address="10.0.0.2", port=20002)}
GO = Go(go=True, address="10.0.0.1", port=20001)


@pytest.fixture
def gpus(db: Database) -> dict[str, list[str]]:
    box.add_people(db)
    return {node: box.add_node(db, node, node_id=node, home_id="h", boot_id="b", pid_namespace="p") for node in NODES}


@pytest.fixture
def do(db: Database) -> Callable[..., Any]:
    def act(action: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        with db.write() as tx:
            return action(tx, *arguments, **named)

    return act


class Gang:
    """A job on both nodes, two GPUs each, and what the nodes tell of it."""

    def __init__(self, db: Database, gpus: dict[str, list[str]], **spec: Any) -> None:
        self.db = db
        self.job = box.add_job(db, 2, resources={"nodes": 2}, **spec)
        self.attempt = box.spread(db, self.job, gpus)

    def do(self, action: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        with self.db.write() as tx:
            return action(tx, self.attempt, *arguments, **named)

    def claim(self, node: str, nonce: str = "n") -> None:
        self.do(lifecycle.claim, node, f"{nonce}-{node}", NOW)

    def prepared(self, node: str) -> Go:
        found: Go = self.do(lifecycle.prepared, node, WHERE[node], NOW)
        return found

    def run(self) -> None:
        for node in NODES:
            self.claim(node)
            self.prepared(node)
        self.do(lifecycle.mark_running, NOW)

    def end(self, node: str, **fields: Any) -> JobState:
        values: dict[str, Any] = {"kind": ResultKind.EXITED, "started_us": NOW, "ended_us": NOW + 1} | fields
        if not values.keys() & {"exit_code", "signal"}:
            values["exit_code"] = 0
        state: JobState = self.do(lifecycle.finish, Result(**values), NOW + 2, node=node)
        return state

    def beat(self, node: str, *, holds: bool = True, beat: int | None = None, **identity: str) -> wire.Orders:
        """A heartbeat of the node, with the attempt in its inventory or not."""
        who = {"node_id": node, "home_id": "h", "boot_id": "b", "pid_namespace": "p"} | identity
        report = wire.AttemptReport(attempt=self.attempt, phase=wire.Phase.RUNNING)
        devices = [
            wire.Device(uuid=f"{node}-gpu-{n}", index=n, kind=wire.DeviceKind.GPU, name="A100", memory=80 * box.GIB)
            for n in range(2)
        ]
        message = wire.Heartbeat(
            identity=wire.Identity(**who),
            devices=devices,
            attempts=[report] if holds else [],
            disk_free=100 * box.GIB,
            beat=beat,
        )
        with self.db.write() as tx:
            return heartbeats.record(tx, node, message, NOW + 5).orders

    def actions(self, node: str) -> list[Action]:
        with self.db.read() as tx:
            return [order.action for order in lifecycle.orders_for(tx, node).orders]

    @property
    def held(self) -> set[str]:
        with self.db.read() as tx:
            query = select(Allocation.node).where(Allocation.attempt_id == self.attempt, Allocation.live)
            return set(tx.scalars(query))

    @property
    def state(self) -> tuple[str, str]:
        return box.job_row(self.db, self.job).state, box.attempt_row(self.db, self.attempt).state

    @property
    def events(self) -> list[str]:
        with self.db.read() as tx:
            return list(tx.scalars(select(Event.message).where(Event.job_id == self.job).order_by(Event.seq)))


def test_all_are_prepared_before_any_goes(db: Database, gpus: dict[str, list[str]]) -> None:
    gang = Gang(db, gpus)
    gang.claim("b")
    assert not gang.prepared("b").go
    assert gang.state == ("assigned", "assigned")
    gang.claim("a")
    assert not gang.prepared("b").go
    assert gang.prepared("a") == GO
    assert gang.state == ("starting", "starting")
    assert gang.prepared("b") == gang.prepared("a") == gang.prepared("b") == GO
    gang.do(lifecycle.mark_running, NOW + 1)
    gang.do(lifecycle.mark_running, NOW + 2)
    assert gang.state == ("running", "running")
    assert gang.held == {"a", "b"}
    assert gang.end("a") is JobState.RUNNING
    assert gang.held == {"b"}
    assert gang.end("a") is JobState.RUNNING
    assert gang.end("b") is JobState.SUCCEEDED
    assert gang.held == set()
    assert gang.end("b") is JobState.SUCCEEDED
    assert gang.events[1] == "assigned to GPUs 0, 1 of node a and GPUs 0, 1 of node b"
    assert "all 2 nodes are ready; ranks meet at 10.0.0.1:20001" in gang.events


def test_whatever_comes_first_and_however_often(db: Database, gpus: dict[str, list[str]]) -> None:
    for order in permutations(["claim-a", "claim-b", "prepared-a", "prepared-b"]):
        gang = Gang(db, gpus)
        for step in (*order, *order[::-1], *order):
            what, _, node = step.partition("-")
            try:
                gang.claim(node) if what == "claim" else gang.prepared(node)
            except lifecycle.Conflict:
                assert what == "prepared"
        assert gang.prepared("b") == GO
        assert gang.state == ("starting", "starting")
        for node in NODES:
            gang.end(node)


def test_a_part_that_is_prepared_anew_before_the_word_names_another_port(
    db: Database, gpus: dict[str, list[str]]
) -> None:
    """Its worker was killed and has bound another one; after the word the old one stands."""
    gang = Gang(db, gpus)
    gang.claim("a")
    gang.prepared("a")
    gang.claim("a")
    gang.do(lifecycle.prepared, "a", Prepared(address="10.0.0.1", port=5), NOW)
    gang.claim("b")
    assert gang.prepared("b").port == 5
    assert gang.prepared("a").port == 5


def test_another_worker_of_a_node_cannot_take_its_part(db: Database, gpus: dict[str, list[str]]) -> None:
    gang = Gang(db, gpus)
    gang.claim("a")
    with pytest.raises(lifecycle.Conflict, match="another worker of node a"):
        gang.claim("a", "other")
    with pytest.raises(lifecycle.Conflict):
        gang.prepared("b")


@pytest.mark.parametrize("ready", [0, 1, 2, 3])
def test_void_at_any_point_before_the_word_spends_no_retry(
    db: Database, gpus: dict[str, list[str]], ready: int
) -> None:
    gang = Gang(db, gpus)
    steps: list[Callable[[], object]] = [lambda: gang.claim("a"), lambda: gang.prepared("a"), lambda: gang.claim("b")]
    for step in steps[:ready]:
        step()
    gang.do(lifecycle.void, "node b fell silent", NOW)
    job = box.job_row(db, gang.job)
    assert (gang.state, job.retries_used, gang.held) == (("queued", "voided"), 0, set())
    with pytest.raises(lifecycle.Conflict):
        gang.claim("b")
    with pytest.raises(lifecycle.Conflict, match="forget it"):
        gang.prepared("a")
    assert gang.actions("a") == gang.actions("b") == []


def test_the_word_meets_a_void(db: Database, gpus: dict[str, list[str]]) -> None:
    for _ in range(6):
        gang = Gang(db, gpus)
        for node in NODES:
            gang.claim(node)
        gang.prepared("a")
        told, voided = meet(partial(gang.prepared, "b"), partial(gang.do, lifecycle.void, "late", NOW))
        if told == GO:
            assert isinstance(voided, lifecycle.Conflict)
            assert gang.prepared("a") == GO
            gang.do(lifecycle.mark_running, NOW)
            gang.end("a")
            gang.end("b")
        else:
            assert isinstance(told, lifecycle.Conflict)
            assert gang.state == ("queued", "voided")
        assert gang.held == set()


def test_the_last_two_results_meet(db: Database, gpus: dict[str, list[str]]) -> None:
    for _ in range(6):
        gang = Gang(db, gpus)
        gang.run()
        meet(partial(gang.end, "a"), partial(gang.end, "b", exit_code=3))
        assert gang.state == ("failed", "failed")
        assert gang.held == set()


def test_a_part_that_cannot_be_prepared_ends_the_attempt(db: Database, gpus: dict[str, list[str]]) -> None:
    gang = Gang(db, gpus, max_retries=3)
    gang.claim("a")
    gang.prepared("a")
    gang.claim("b")
    gang.end("b", kind=ResultKind.UNUSABLE, message="live: /x is no folder on this node", exit_code=1, started_us=None)
    assert gang.state == ("failed", "failed")
    assert gang.held == set()
    assert box.job_row(db, gang.job).error["message"] == "node b: live: /x is no folder on this node"
    with pytest.raises(lifecycle.Conflict):
        gang.prepared("a")


def test_one_part_that_fails_ends_the_others(db: Database, gpus: dict[str, list[str]]) -> None:
    gang = Gang(db, gpus)
    gang.run()
    assert gang.actions("a") == [Action.RUN]
    ranks = [wire.RankExit(rank=3, signal=9, ended_us=NOW)]
    assert gang.end("b", exit_code=1, failed_rank=3, ranks=ranks) is JobState.STOPPING
    assert gang.state == ("stopping", "stopping")
    assert gang.held == {"a"}
    assert gang.actions("a") == [Action.KILL]
    assert gang.actions("b") == []
    killed = {"kind": ResultKind.KILLED, "signal": 9, "stop": StopReason.CANCEL}
    assert gang.end("a", **killed) is JobState.FAILED
    error = box.job_row(db, gang.job).error
    assert error["message"].startswith("rank 3 on node b was killed by SIGKILL (signal 9)")
    assert gang.held == set()


def test_a_failure_may_spend_a_retry_once(db: Database, gpus: dict[str, list[str]]) -> None:
    gang = Gang(db, gpus, max_retries=1)
    gang.run()
    gang.end("b", exit_code=1)
    assert gang.end("a", exit_code=1) is JobState.QUEUED
    assert box.job_row(db, gang.job).retries_used == 1


def test_a_cancel_reaches_all_parts(db: Database, gpus: dict[str, list[str]], do: Callable[..., Any]) -> None:
    gang = Gang(db, gpus)
    gang.run()
    do(lifecycle.request_stop, gang.job, StopReason.CANCEL, "ada", NOW)
    assert gang.actions("a") == gang.actions("b") == [Action.STOP]
    stopped = {"stop": StopReason.CANCEL}
    assert gang.end("b", **stopped) is JobState.STOPPING
    assert gang.actions("a") == [Action.STOP]
    assert gang.end("a", **stopped, stopped_at_step=12) is JobState.CANCELLED
    assert gang.events[-1] == "stopped after a checkpoint at step 12"


def test_before_the_word_a_cancel_is_done_at_once(
    db: Database, gpus: dict[str, list[str]], do: Callable[..., Any]
) -> None:
    gang = Gang(db, gpus)
    gang.claim("a")
    do(lifecycle.request_stop, gang.job, StopReason.CANCEL, "ada", NOW)
    assert gang.state == ("cancelled", "cancelled")
    with pytest.raises(lifecycle.Conflict):
        gang.prepared("a")


def test_it_is_reachable_when_all_its_parts_are(
    db: Database, gpus: dict[str, list[str]], do: Callable[..., Any]
) -> None:
    gang = Gang(db, gpus)
    gang.run()
    for node in NODES:
        do(registration.mark_unreachable, node, NOW, NOW)
    assert gang.state == ("unreachable", "unreachable")
    gang.beat("a")
    assert gang.state == ("unreachable", "unreachable")
    gang.beat("b")
    assert gang.state == ("running", "running")


def test_a_part_that_has_ended_is_not_missed(db: Database, gpus: dict[str, list[str]], do: Callable[..., Any]) -> None:
    gang = Gang(db, gpus)
    gang.run()
    gang.end("a")
    do(registration.mark_unreachable, "a", NOW, NOW)
    assert gang.state == ("running", "running")
    gang.beat("a", holds=False, beat=1)
    assert gang.end("b") is JobState.SUCCEEDED


def test_a_result_of_the_part_that_was_silent_ends_the_silence(
    db: Database, gpus: dict[str, list[str]], do: Callable[..., Any]
) -> None:
    gang = Gang(db, gpus)
    gang.run()
    do(registration.mark_unreachable, "b", NOW, NOW)
    assert gang.end("a", exit_code=1) is JobState.UNREACHABLE
    assert gang.held == {"b"}
    assert gang.actions("b") == [Action.KILL]
    assert gang.end("b", exit_code=1) is JobState.FAILED


def test_death_is_proven_part_by_part(db: Database, gpus: dict[str, list[str]]) -> None:
    gang = Gang(db, gpus)
    gang.run()
    for beat in (None, 1, 2):
        gang.beat("a", beat=beat)
        gang.beat("b", beat=beat)
    gang.beat("b", holds=False, beat=3, boot_id="b2")
    assert gang.state == ("stopping", "stopping")
    assert gang.held == {"a"}
    assert gang.actions("a") == [Action.KILL]
    assert gang.end("a", kind=ResultKind.KILLED, signal=9, stop=StopReason.CANCEL) is JobState.QUEUED
    with db.read() as tx:
        told = tx.scalars(select(Event.message).where(Event.job_id == gang.job).order_by(Event.seq.desc())).first()
    assert told == "node b: its node was booted again; not its own fault: try 1 of 3, no retry is spent"


def test_an_administrators_word_is_about_one_node(
    db: Database, gpus: dict[str, list[str]], do: Callable[..., Any]
) -> None:
    gang = Gang(db, gpus)
    gang.run()
    do(registration.mark_unreachable, "b", NOW, NOW)
    with pytest.raises(lifecycle.Conflict, match="node a is heard"):
        do(registration.declare_dead, "a", "root", NOW)
    assert do(registration.declare_dead, "b", "root", NOW) == [gang.job]
    assert gang.held == {"a"}
    orders = gang.beat("b")
    assert [order.action for order in orders.orders] == [Action.KILL]
    assert gang.end("a", exit_code=1) is JobState.QUEUED
    with db.read() as tx:
        assert not any(tx.scalars(select(Member.settled)))


def test_a_restored_database_learns_of_each_part(db: Database, gpus: dict[str, list[str]]) -> None:
    """It believes that the attempt waits, but the nodes have begun."""
    gang = Gang(db, gpus)
    gang.beat("b")
    assert gang.state[1] == AttemptState.RUNNING or gang.state[1] == AttemptState.STARTING
    gang.beat("a")
    with db.read() as tx:
        assert all(tx.scalars(select(Member.claimed_on)).all())
    gang.end("a")
    assert gang.end("b") is JobState.SUCCEEDED


def test_a_gpu_of_one_node_that_is_held_keeps_all(db: Database, gpus: dict[str, list[str]]) -> None:
    box.assign(db, box.add_job(db), gpus["b"][:1], "b")
    with pytest.raises(lifecycle.Conflict, match="held by another attempt"):
        Gang(db, gpus)
    with db.read() as tx:
        assert set(tx.scalars(select(Allocation.node).where(Allocation.live))) == {"b"}
