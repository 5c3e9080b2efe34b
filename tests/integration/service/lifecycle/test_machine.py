"""Random interleavings against a real database: devices are never held twice, nothing final holds one."""

from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, func, select

from service import lifecycle
from service.db.engine import Database
from service.db.models import Allocation, Attempt, DeviceUse, Event, Job, Member, Node
from service.estimation.forecasts import Estimator
from service.nodes import heartbeats
from service.scheduler.model.nodes import Placement
from service.scheduler_cache.load import Loader
from tests.support import box
from tests.support.box import NOW
from torchyard.states import (
    ATTEMPT_FINAL,
    ATTEMPT_TRANSITIONS,
    JOB_FINAL,
    JOB_HOLDS_GPUS,
    JOB_TRANSITIONS,
    AttemptState,
    JobState,
    StopReason,
)
from torchyard.wire import AttemptReport, Heartbeat, Identity, Result, ResultKind
from torchyard.wire import Phase as WirePhase

GPUS = [f"box-gpu-{n}" for n in range(3)]
CARD = 80 * box.GIB
SHARES = st.sampled_from([None, None, 20 * box.GIB, 50 * box.GIB])
IDENTITY = Identity(node_id="machine-box", home_id="home-box", boot_id="boot-1", pid_namespace="pid-1")
RESULTS = st.builds(
    Result,
    kind=st.sampled_from(ResultKind),
    exit_code=st.sampled_from([0, 1, None]),
    signal=st.sampled_from([None, 9]),
    stop=st.sampled_from([None, *StopReason]),
    stopped_at_step=st.sampled_from([None, 10]),
    terminated=st.booleans(),
    started_us=st.sampled_from([None, NOW]),
    ended_us=st.just(NOW + 5),
)


class Machine(RuleBasedStateMachine):
    db: ClassVar[Database]
    jobs = Bundle("jobs")
    attempts = Bundle("attempts")

    def __init__(self) -> None:
        super().__init__()
        with self.db.write() as tx:
            for table in (Event, Allocation, DeviceUse, Member, Attempt, Job):
                tx.execute(delete(table))
        self.states: dict[str, str] = {}
        self.loader = Loader(disk_floor=0, estimator=Estimator())

    def do(self, action: Any, *arguments: Any) -> Any:
        """Runs one change; a refusal must leave everything as it was."""
        try:
            with self.db.write() as tx:
                return action(tx, *arguments)
        except lifecycle.Conflict:
            return None

    @rule(target=jobs, gpus=st.integers(0, 3), retries=st.integers(0, 1), share=SHARES)
    def submit(self, gpus: int, retries: int, share: int | None) -> str:
        return box.add_job(self.db, gpus, max_retries=retries, resources={"gpu_share": share})

    @rule(target=attempts, job=jobs, uuids=st.lists(st.sampled_from(GPUS), unique=True, max_size=3))
    def assign(self, job: str, uuids: list[str]) -> Any:
        attempt = self.do(lifecycle.assign, job, [Placement(node="box", uuids=tuple(uuids))], NOW)
        return multiple() if attempt is None else attempt

    @rule(target=attempts, gpus=st.integers(0, 2), gpu=st.sampled_from(GPUS), share=SHARES)
    def start(self, gpus: int, gpu: str, share: int | None) -> Any:
        """A short way to RUNNING, so that what comes after it is met often."""
        place = Placement(node="box", uuids=(gpu,)[:gpus])
        job = box.add_job(self.db, gpus, max_retries=1, resources={"gpu_share": share})
        attempt = self.do(lifecycle.assign, job, [place], NOW)
        if attempt is None:
            return multiple()
        self.do(lifecycle.claim, attempt, "box", "one", NOW)
        self.do(lifecycle.mark_running, attempt, NOW)
        return attempt

    @rule(attempt=attempts, nonce=st.sampled_from(["one", "two"]))
    def claim(self, attempt: str, nonce: str) -> None:
        self.do(lifecycle.claim, attempt, "box", nonce, NOW)

    @rule(attempt=attempts)
    def run(self, attempt: str) -> None:
        self.do(lifecycle.mark_running, attempt, NOW)

    @rule(attempt=attempts, result=RESULTS)
    def finish(self, attempt: str, result: Result) -> None:
        self.do(lifecycle.finish, attempt, result, NOW)

    @rule(attempt=attempts)
    def void(self, attempt: str) -> None:
        self.do(lifecycle.void, attempt, "unclaimed", NOW)

    @rule(attempt=consumes(attempts))
    def declare_dead(self, attempt: str) -> None:
        self.do(lifecycle.declare_dead, attempt, "an administrator says so", NOW)

    @rule(job=jobs, reason=st.sampled_from(StopReason))
    def stop(self, job: str, reason: StopReason) -> None:
        self.do(lifecycle.request_stop, job, reason, "ada", NOW)

    @rule(job=jobs)
    def checkpoint(self, job: str) -> None:
        self.do(lifecycle.request_checkpoint, job, "ada", NOW)

    @rule(job=jobs, checkpoint=st.booleans())
    def give_way(self, job: str, checkpoint: bool) -> None:
        note = lifecycle.Note(kind="preempting", message="to be preempted")
        self.do(partial(lifecycle.request_preemption, checkpoint=checkpoint), job, {"words": "job 1"}, note, NOW)

    @rule(attempt=attempts)
    def abandon_preemption(self, attempt: str) -> None:
        note = lifecycle.Note(kind="preemption-abandoned", message="keeps its devices")
        self.do(lifecycle.abandon_preemption, attempt, note, NOW + 60, NOW)

    @rule(job=jobs, held=st.booleans())
    def hold(self, job: str, held: bool) -> None:
        self.do(lifecycle.hold if held else lifecycle.release_hold, job, "ada", NOW)

    @rule()
    def silence(self) -> None:
        self.do(lifecycle.set_unreachable, "box", NOW)

    @rule(data=st.data(), boot=st.sampled_from(["boot-1", "boot-2"]))
    def heartbeat(self, data: st.DataObject, boot: str) -> None:
        with self.db.read() as tx:
            live = list(tx.scalars(select(Attempt.id).where(Attempt.state.not_in(ATTEMPT_FINAL)).order_by(Attempt.id)))
            beat = tx.scalar(select(Node.beat))
            devices = [
                {"uuid": u, "index": n, "kind": "gpu", "name": "A100", "memory": CARD} for n, u in enumerate(GPUS)
            ]
        some = st.lists(st.sampled_from(live), unique=True) if live else st.just([])
        seen = data.draw(st.just(live) | some)
        phase = data.draw(st.sampled_from(WirePhase))
        message = Heartbeat(
            identity=IDENTITY.model_copy(update={"boot_id": boot}),
            devices=devices,
            attempts=[AttemptReport(attempt=a, phase=phase) for a in seen],
            disk_free=100 * box.GIB,
            beat=data.draw(st.sampled_from([None, beat, max(beat - 1, 0)])),
        )
        self.do(heartbeats.record, "box", message, NOW)

    @rule()
    def look(self) -> None:
        """What the scheduler has learnt bit by bit is what a new one reads at once."""
        fresh = Loader(disk_floor=0, estimator=Estimator())
        with self.loader.snapshot(self.db, NOW) as (_, known), fresh.snapshot(self.db, NOW) as (_, new):
            pass
        assert (known.waiting, known.running, known.nodes) == (new.waiting, new.running, new.nodes)

    @invariant()
    def no_device_gives_out_more_than_it_has(self) -> None:
        with self.db.read() as tx:
            held = tx.execute(select(Allocation.uuid, Allocation.share).where(Allocation.live)).all()
            counted = {row.uuid: row.used for row in tx.execute(select(DeviceUse.uuid, DeviceUse.used))}
        for uuid in GPUS:
            shares = [CARD if share is None else share for holder, share in held if holder == uuid]
            assert sum(shares) <= CARD
            assert sum(shares) == counted.get(uuid, 0)

    @invariant()
    def only_live_attempts_hold_devices_and_each_job_has_one_at_most(self) -> None:
        with self.db.read() as tx:
            holders = list(tx.scalars(select(Attempt.state).join(Allocation).where(Allocation.live)))
            live = tx.execute(
                select(Attempt.job_id, func.count()).where(Attempt.state.not_in(ATTEMPT_FINAL)).group_by(Attempt.job_id)
            ).all()
            jobs = {row.id: row.state for row in tx.execute(select(Job.id, Job.state))}
        assert not set(holders) & ATTEMPT_FINAL
        assert all(count == 1 for _, count in live)
        assert {job for job, _ in live} == {job for job, state in jobs.items() if state in JOB_HOLDS_GPUS}

    @invariant()
    def every_move_is_in_the_table(self) -> None:
        with self.db.read() as tx:
            now = {row.id: row.state for row in tx.execute(select(Attempt.id, Attempt.state))}
            jobs = {row.id: row.state for row in tx.execute(select(Job.id, Job.state))}
            numbers = tx.execute(select(Event.job_id, func.max(Event.seq), func.count()).group_by(Event.job_id)).all()
        assert all(last == count for _, last, count in numbers)
        for name, state in (now | jobs).items():
            before = self.states.get(name, state)
            table: Any = ATTEMPT_TRANSITIONS if name in now else JOB_TRANSITIONS
            kind: Any = AttemptState if name in now else JobState
            # The result of what nobody had claimed is two moves at once.
            adopted = before == "assigned" and kind(state) in table[kind("starting")]
            assert before == state or adopted or kind(state) in table[kind(before)], (name, before, state)
            assert name in now or before not in JOB_FINAL or before == state
        self.states = now | jobs


@pytest.mark.timeout(300)
def test_random_interleavings(db: Database) -> None:
    box.add_people(db)
    box.add_node(db, devices=3)
    run_state_machine_as_test(
        type("Bound", (Machine,), {"db": db}),
        settings=settings(
            max_examples=25,
            stateful_step_count=30,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        ),
    )
