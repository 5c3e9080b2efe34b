"""What users and projects have had, against what they are entitled to.

What somebody has had is GPU time: of jobs that ended, halved every half-life, and of what runs now so far. The box is
divided between those who have jobs, in proportion to their weights. The **excess** of one of them is the quotient of
what they had and what they were entitled to of the sum: 1 is exactly their share, 2 twice as much. An hour of a GPU for
each unit of weight is added to everybody, so that the first minutes on an idle box decide nothing.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from service.scheduler.model import fractions
from service.scheduler.model.columns import Floats
from service.scheduler.model.state import SchedulerState
from service.scheduler.model.table import Column
from torchyard.spec.policy import Policy

#: Nobody's jobs count shorter than those of somebody with this excess.
LEAST = 0.05


class FairShares(NamedTuple):
    """One number for each equivalence class."""

    #: The larger excess of its user and its project.
    worst: Floats
    #: By how much its jobs count longer in the order `fair`.
    factor: Floats


def shares(state: SchedulerState, now_us: int, policy: Policy) -> FairShares:
    """The shares of everybody who has jobs."""
    classes, half_life_us = state.classes, policy.half_life * 1e6
    of_users, of_projects = _others_us(state, now_us) if state.sharing else ({}, {})
    users = classes.users.excess(state.users, of_users, now_us, half_life_us)[classes.user]
    projects = classes.projects.excess(state.projects, of_projects, now_us, half_life_us)[classes.project]
    factor = (np.maximum(users, LEAST) * np.maximum(projects, LEAST)) ** 0.3
    return FairShares(worst=np.maximum(users, projects), factor=factor)


def _others_us(state: SchedulerState, now_us: int) -> tuple[dict[str, float], dict[str, float]]:
    """Of the GPUs that jobs run on and share: the time that is not theirs, of each user and of each project."""
    users: defaultdict[str, float] = defaultdict(float)
    projects: defaultdict[str, float] = defaultdict(float)
    rows, others = fractions.shareable_by_row(state)
    times = others * (now_us - state.table.columns[Column.SINCE][rows])
    for number, time_us in zip(state.table.class_id[rows].tolist(), times.tolist(), strict=True):
        equivalence = state.classes.key(number)
        users[equivalence.user] += time_us
        projects[equivalence.project] += time_us
    return users, projects
