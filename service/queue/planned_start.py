"""Forecast of a job that has only been checked: where and when it would start if it were submitted now."""

from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection, select

from service.db.engine import Database
from service.db.models import Device, Project
from service.db.records.spec import StoredSpec
from service.estimation import estimates
from service.estimation.forecasts import Estimator
from service.identity import unix_accounts
from service.identity.callers import Caller
from service.lifecycle import dependencies
from service.queue import overview
from service.queue.snapshot import QueueSnapshot, queue_snapshot
from service.scheduler.explain.forecast import Expected, expected_start
from service.scheduler.model.jobs import Waiting
from service.scheduler.model.nodes import Placement
from service.scheduler.policy.order import order
from service.scheduler_cache import load_jobs
from service.scheduler_cache.known_order import OrderedQueue
from service.scheduler_cache.load import Loader
from service.scheduler_cache.load_jobs import LoadedJob
from torchyard.api import HeldDevice, PlannedStart
from torchyard.ids import JobId
from torchyard.spec import PRIORITY_RANK, JobSpec
from torchyard.states import JobState

_JOB = JobId("planned")


class DryRunJob(NamedTuple):
    """A job that is not stored, and a checkpoint that it would go on from."""

    caller: Caller
    spec: JobSpec
    checkpoint: str | None = None


def forecast(db: Database, loader: Loader, estimator: Estimator, now: int, planned: DryRunJob) -> PlannedStart:
    """Return the place in the queue, the expected start and the devices of a job submitted now."""
    with queue_snapshot(db, loader, now) as (tx, without):
        state = without.state.copy()
        state.put([_waiting(tx, estimator, without, planned)])
        seen = replace(without, state=state, order=OrderedQueue(order(state, now, without.policy)))
        expected = (
            Expected(None, None)
            if seen.state.paused
            else expected_start(seen.state, _JOB, now, seen.policy, seen.queue)
        )
        reason = overview.strongest_reason(tx, seen, _JOB, expected)
        return PlannedStart(
            position=seen.queue.index(_JOB) + 1,
            reason=reason.message,
            reason_code=reason.code,
            reason_params=reason.params,
            devices=_devices(tx, expected.placements),
            **overview.expected_times(expected),
        )


def _waiting(tx: Connection, estimator: Estimator, seen: QueueSnapshot, planned: DryRunJob) -> Waiting:
    """Return the job as the loader would make it from its row, with the highest number of all."""
    caller, spec = planned.caller, planned.spec
    stored = StoredSpec(spec.model_dump(mode="json"))
    row = LoadedJob(
        spec=stored,
        id=_JOB,
        last_event=0,
        number=1 + max((job.number for job in seen.state.waiting.values()), default=0),
        user_id=caller.user_id,
        project=spec.project,
        state=JobState.QUEUED,
        held=False,
        blocked=dependencies.resolve(tx, caller, spec.after, 1, lock=False).blocked,
        stop=None,
        priority=PRIORITY_RANK[spec.priority],
        attempt=0,
        total_steps=None,
        restore_checkpoint=planned.checkpoint,
        queued_us=seen.now,
        retry_us=None,
        eligible_us=seen.now,
        ran_us=0,
        group_id=None,
        restarts=0,
        project_restarts=tx.scalar(select(Project.restarts).where(Project.name == spec.project)) is not False,
    )
    key = estimates.history_key_of(spec.project, caller.user_id, stored)
    remaining = estimator.of_history(tx, key, stored.time_limit_us, seen.now)
    waiting = load_jobs.waiting(row, remaining, seen.policy)
    excluded = unix_accounts.excluded_nodes(tx).get(caller.user_id, frozenset())
    return replace(waiting, resources=replace(waiting.resources, excluded_nodes=excluded))


def _devices(tx: Connection, placements: tuple[Placement, ...]) -> list[HeldDevice]:
    query = select(Device.node, Device.uuid, Device.index.label("at"), Device.kind).order_by(Device.index)
    return [
        HeldDevice(node=row.node, uuid=row.uuid, index=row.at, kind=row.kind)
        for placement in placements
        for row in tx.execute(query.where(Device.node == placement.node, Device.uuid.in_(placement.uuids)))
    ]
