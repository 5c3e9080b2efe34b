"""A waiting job as it would wait with a changed spec, and what to type to change it."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from service.db.records.jobs import JobRecord
from service.db.records.spec import StoredSpec
from service.errors import ProblemError
from service.estimation import estimates
from service.estimation.forecasts import Estimator
from service.identity.callers import Caller
from service.infra import times
from service.infra.times import minute
from service.jobs import change
from service.jobs.submit import check_priority
from service.queue.snapshot import QueueSnapshot
from service.scheduler.explain.alternatives import Proposal, StartingChange
from service.scheduler.explain.fit import never_fits
from service.scheduler.model.jobs import Estimate, Waiting
from service.scheduler_cache.load import resources_of
from torchyard.api import Alternative
from torchyard.spec import PRIORITY_RANK, JobSpec


class JobVariants:
    """Maker of changed jobs from one that waits."""

    def __init__(
        self, tx: Connection, estimator: Estimator, seen: QueueSnapshot, job: JobRecord, caller: Caller
    ) -> None:
        self._tx, self._estimator, self._job, self._caller = tx, estimator, job, caller
        self._waiting, self._infos, self._now = seen.state.waiting[job.id], list(seen.state.nodes.values()), seen.now

    def build(self, proposal: Proposal) -> Waiting | None:
        """Return the changed job; None if the spec or the caller's rights forbid it, or no node could ever hold it."""
        if "held" in proposal.change:
            return replace(self._waiting, ineligible=None)
        try:
            spec = change.changed_spec(self._job.spec.data, _nested(proposal.change))
            check_priority(self._caller, spec.priority)
        except ProblemError:
            return None
        resources = replace(resources_of(spec), excluded_nodes=self._waiting.resources.excluded_nodes)
        nodes = spec.resources.nodes
        if never_fits(resources, self._infos, nodes):
            return None
        return replace(
            self._waiting,
            resources=resources,
            nodes=nodes,
            priority=PRIORITY_RANK[spec.priority],
            limit_us=None if spec.time_limit is None else spec.time_limit * 1_000_000,
            preemptible=self._flexible(spec),
            pinned=spec.preemptible is False,
            remaining=self._estimate(spec),
        )

    def _flexible(self, spec: JobSpec) -> bool:
        if spec.preemptible is not None:
            return spec.preemptible
        return spec.restartable is True or self._waiting.preemptible

    def _estimate(self, spec: JobSpec) -> Estimate | None:
        """Return the estimate that the loader would find; for a job that has run the one before, within its limit."""
        known, limit_us = self._waiting.remaining, None if spec.time_limit is None else spec.time_limit * 1_000_000
        if known is not None and self._job.attempt:
            most = known.p90_us if limit_us is None else limit_us
            points = {name: min(getattr(known, name), most) for name in ("p10_us", "p50_us", "p90_us")}
            return replace(known, **points)
        key = estimates.history_key_of(self._job.project, self._job.user_id, StoredSpec(spec.model_dump(mode="json")))
        return self._estimator.of_history(self._tx, key, limit_us, self._now)


def presented(number: int, found: StartingChange) -> Alternative:
    """Present the change, in words and as a command."""
    starts_us, proposal = found.starts_us, found.proposal
    if starts_us is None:
        where = " and ".join(f"node {placement.node}" for placement in found.placements)
        message = f"it would start now {proposal.words}, on {where}"
    else:
        message = f"it is expected to start at about {times.words(minute(starts_us))} {proposal.words}"
    return Alternative(
        change=proposal.change,
        message=message,
        nodes=[placement.node for placement in found.placements],
        starts="now" if starts_us is None else minute(starts_us),
        command=_command(number, proposal),
    )


def _command(number: int, proposal: Proposal) -> str:
    if "held" in proposal.change:
        return f"yard release {number}"
    changes = " ".join(f"--set {path}={_typed(value)}" for path, value in proposal.change.items())
    if proposal.in_place:
        return f"yard change {number} {changes}"
    return f"yard cancel {number} && yard rerun {number} {changes}"


def _typed(value: Any) -> str:
    """Return the value as YAML reads it."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _nested(change: dict[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in change.items():
        *parents, last = path.split(".")
        place = nested
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return nested
