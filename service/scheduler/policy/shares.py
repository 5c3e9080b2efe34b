"""Fair shares: the usage of users and projects, against what they are entitled to.

Usage is GPU time: of jobs that ended, halved every half-life, and of running jobs so far. The cluster is divided
between the tenants that have jobs, in proportion to their weights. The **excess** of a tenant is its usage divided by
the part of all usage that it is entitled to: 1 is exactly its share, 2 twice as much. An hour of a GPU for each unit of
weight is added to every tenant's usage, so that the first minutes on an idle cluster decide nothing.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from service.scheduler.model import fractions
from service.scheduler.model.columns import Floats
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from torchyard.spec.policy import Policy

#: A smaller excess counts as this one in the order.
LEAST = 0.05


class FairShares(NamedTuple):
    """Excess of the tenants of each equivalence class, and its effect on the order; arrays by the class's number."""

    #: The larger excess of its user and its project.
    worst: Floats
    #: Factor by which the remaining time of its jobs counts longer in the order `fair`.
    factor: Floats


def shares(state: SchedulerState, now_us: int, policy: Policy) -> FairShares:
    """Return the shares of all users and projects that have jobs."""
    classes, half_life_us = state.classes, policy.half_life * 1e6
    of_users, of_projects = _others_us(state, now_us) if state.sharing else ({}, {})
    users = classes.users.excess(state.users, of_users, now_us, half_life_us)[classes.user]
    projects = classes.projects.excess(state.projects, of_projects, now_us, half_life_us)[classes.project]
    factor = (np.maximum(users, LEAST) * np.maximum(projects, LEAST)) ** 0.3
    return FairShares(worst=np.maximum(users, projects), factor=factor)


def _others_us(state: SchedulerState, now_us: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return the time of running jobs' shared GPUs that is not charged to them, by user and by project.

    In GPU-microseconds.
    """
    users: defaultdict[str, float] = defaultdict(float)
    projects: defaultdict[str, float] = defaultdict(float)
    rows, others = fractions.shareable_by_row(state)
    times = others * (now_us - state.table.columns[Column.SINCE][rows])
    for number, time_us in zip(state.table.class_id[rows].tolist(), times.tolist(), strict=True):
        equivalence = state.classes.key(number)
        users[equivalence.user] += time_us
        projects[equivalence.project] += time_us
    return users, projects
