"""What users and projects have had, against what they are entitled to.

What somebody has had is GPU time: of jobs that ended, halved every half-life, and of what runs now so far. The box is
divided between those who have jobs, in proportion to their weights. The **excess** of one of them is the quotient of
what they had and what they were entitled to of the sum: 1 is exactly their share, 2 twice as much. An hour of a GPU for
each unit of weight is added to everybody, so that the first minutes on an idle box decide nothing.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from service.scheduler import parts
from service.scheduler.columns import Floats, Ints
from service.scheduler.parties import Parties
from service.scheduler.table import Column
from torchyard.policy import Policy

if TYPE_CHECKING:
    from service.scheduler.state import State

#: Nobody's jobs count shorter than those of somebody with this excess.
LEAST = 0.05


class Shares(NamedTuple):
    """One number for each lane."""

    #: The larger excess of its user and its project.
    worst: Floats
    #: By how much its jobs count longer in the order `fair`.
    factor: Floats


def shares(state: "State", now_us: int, policy: Policy) -> Shares:
    """The shares of everybody who has jobs."""
    lanes = state.lanes
    lanes.users.refresh(state.users)
    lanes.projects.refresh(state.projects)
    half_life_us = policy.half_life * 1e6
    user, project = lanes.user, lanes.project
    users = lanes.users.excess(now_us, half_life_us, _others_us(state, lanes.users, user, now_us))
    projects = lanes.projects.excess(now_us, half_life_us, _others_us(state, lanes.projects, project, now_us))
    factor = (np.maximum(users, LEAST) ** 0.3)[user] * (np.maximum(projects, LEAST) ** 0.3)[project]
    return Shares(worst=np.maximum(users[user], projects[project]), factor=factor)


def _others_us(state: "State", parties: Parties, party_of: Ints, now_us: int) -> Floats | None:
    """Of the GPUs that each party's jobs run on and share: the time that is not theirs."""
    if not state.sharing:
        return None
    rows, others = parts.rests(state)
    since_us = state.table.columns[Column.SINCE][rows]
    owners = party_of[state.table.lane[rows]]
    return np.bincount(owners, weights=others * (now_us - since_us), minlength=len(parties.names)).astype(np.float64)
