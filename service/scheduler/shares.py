"""What users and projects have had, against what they are entitled to.

What somebody has had is GPU time: of jobs that ended, halved every half-life, and of what runs now so far. The box is
divided between those who have jobs, in proportion to their weights. The **excess** of one of them is the quotient of
the part that they had and the part that they are entitled to: 1 is exactly their share, 2 twice as much. An hour of a
GPU for each unit of weight is added to everybody, so that the first minutes on an idle box decide nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.scheduler.interning import Interner
from service.scheduler.table import Floats, Ints
from torchyard.policy import Policy

if TYPE_CHECKING:
    from service.scheduler.state import Account, State

#: GPU-seconds added for each unit of weight.
HEAD_START = 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Shares:
    """The excess of each lane's user and project, by the numbers of lanes."""

    users: Floats
    projects: Floats

    @property
    def worst(self) -> Floats:
        """The larger excess of the two."""
        return np.maximum(self.users, self.projects)


def shares(state: "State", now_us: int, policy: Policy) -> Shares:
    """The excess of everybody who has jobs."""
    lanes = state.lanes
    users = _excess(lanes.users, lanes.of_users, state.users, now_us, policy)
    projects = _excess(lanes.projects, lanes.of_projects, state.projects, now_us, policy)
    return Shares(users=users[lanes.user], projects=projects[lanes.project])


def _excess(
    parties: Interner[str], runs: Ints, accounts: Mapping[str, "Account"], now_us: int, policy: Policy
) -> Floats:
    count = len(parties)
    known = np.zeros((3, count))
    for name, number in parties.ids.items():
        account = accounts.get(name)
        known[:, number] = (1.0, 0.0, now_us) if account is None else (account.weight, account.usage, account.usage_us)
    weights, usage, as_of = known
    halvings = (now_us - as_of) / (policy.half_life * 1e6)
    running = (runs[0, :count] * now_us - runs[1, :count]) / 1e6
    had = usage * np.exp2(-halvings) + running + HEAD_START * weights
    entitled = weights * (had.sum() / weights.sum()) if count else weights
    return np.divide(had, entitled, out=np.ones(count), where=entitled > 0)
