"""Facts that a scheduling pass knows beside its decisions. Pure."""

from service.scheduler.model.state import SchedulerState
from service.scheduler.policy.decide import SchedulingPass
from service.scheduler.policy.placement import PlacementRequest
from service.scheduler.policy.quotas import Reached
from service.scheduler.policy.reserved import Reserved
from torchyard.ids import JobId


def reached(done: SchedulingPass, state: SchedulerState, job: JobId) -> list[Reached]:
    """Return the quotas that forbid a waiting job to start, counting what the pass decided."""
    class_id = int(state.table.class_id[state.table.rows[job]])
    return done.quotas.reached(state.classes.key(class_id))


def against(done: SchedulingPass, request: PlacementRequest, node: str) -> list[str]:
    """Return the ids of the reservations that keep devices of the node from the job."""
    found = [] if done.mask is None else done.mask.against(request)
    return [one.reservation.id for one in found if node in one.devices]


def reserved_now(done: SchedulingPass, node: str, now_us: int) -> list[Reserved]:
    """Return the reservations that have begun and have devices of the node."""
    found = [] if done.mask is None else done.mask.reserved
    return [one for one in found if node in one.devices and one.reservation.starts_us <= now_us]


def given(done: SchedulingPass, state: SchedulerState, node: str) -> tuple[JobId, ...]:
    """Return the jobs that the pass placed on the node, in order."""
    return tuple(job for job in done.cluster.capacities[node].jobs if job not in state.running)
