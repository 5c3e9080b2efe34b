"""Jobs of one state beside the surroundings of another, without a copy of a hundred thousand jobs."""

import copy

from service.scheduler.model.state import SchedulerState


def beside(jobs: SchedulerState, other: SchedulerState) -> SchedulerState:
    """Return the jobs of one state beside what another knows of nodes, accounts, reservations, pauses and promises.

    The jobs are not copied: they must never change any more.
    """
    made = copy.copy(jobs)
    for name in ("nodes", "users", "projects", "caps", "reservations", "paused"):
        setattr(made, name, getattr(other, name))
    made.promised, made._capacities = other.promised.copy(), jobs._capacities.copy()
    return made
