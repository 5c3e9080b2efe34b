"""Users, or projects, of the jobs that are known: what runs for them, and what they are entitled to, as columns."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from service.scheduler.columns import Floats, Ints, grown
from service.scheduler.interning import Interner

if TYPE_CHECKING:
    from service.scheduler.state import Account

#: GPU-seconds added for each unit of weight.
HEAD_START = 3600.0
_ROOM = 64


class Parties:
    """Numbered from 0; a number without jobs has no weight."""

    def __init__(self) -> None:
        self.names: Interner[str] = Interner()
        #: GPUs that run now, and the sum over them of the moments at which they were given.
        self._runs: Ints = np.zeros((2, _ROOM), dtype=np.intp)
        #: Weight, usage, and when the usage was true.
        self._known: Floats = np.zeros((3, _ROOM))
        #: The account that the columns tell of; False: none yet.
        self._seen: list[Account | bool | None] = [False] * _ROOM
        self._bounded: set[int] = set()

    def take(self, name: str) -> int:
        """The party's number."""
        number = self.names.take(name)
        if number >= len(self._seen):
            self._runs = grown(self._runs, number + 1)
            self._known = grown(self._known, number + 1)
            self._seen += [False] * (self._known.shape[1] - len(self._seen))
        return number

    def drop(self, number: int) -> None:
        """A lane of it less."""
        self.names.drop(number)
        if self.names.keys[number] is None:
            self._known[:, number] = 0
            self._seen[number] = False
            self._bounded.discard(number)

    def count(self, number: int, gpus: int, since_us: int) -> None:
        """So many GPUs more run for it, since then; fewer if negative."""
        self._runs[0, number] += gpus
        self._runs[1, number] += gpus * since_us

    def refresh(self, accounts: Mapping[str, "Account"]) -> None:
        """Reads the accounts that have changed."""
        seen = self._seen
        for name, number in self.names.ids.items():
            account = accounts.get(name)
            if account is not seen[number]:
                self._read(number, account)

    def _read(self, number: int, account: "Account | None") -> None:
        self._seen[number] = account
        self._bounded.discard(number)
        if account is None:
            self._known[:, number] = 1.0, 0.0, 0.0
            return
        self._known[:, number] = account.weight, account.usage, account.usage_us
        if account.max_gpus is not None or account.week_left_us is not None:
            self._bounded.add(number)

    @property
    def bounded(self) -> list[tuple[str, int]]:
        """Those with a quota, by name and number, as of the last refreshment."""
        return [(self.names.key(number), number) for number in sorted(self._bounded)]

    def runs(self, number: int) -> tuple[int, int]:
        """GPUs that run for it, and the sum over them of the moments at which they were given."""
        gpus, begun = self._runs[:, number].tolist()
        return gpus, begun

    def excess(self, now_us: int, half_life_us: float, others_us: Floats | None = None) -> Floats:
        """What each has had, against what it is entitled to, as of the last refreshment (`shares`); `others_us` is time
        of GPUs that run for it which is not its own (`parts`).
        """
        count = len(self.names)
        if len(self.names.ids) < 2:
            return np.ones(count)
        weights, usage, as_of = self._known[:, :count]
        gpus, begun = self._runs[:, :count]
        had = usage * np.exp2((as_of - now_us) / half_life_us)
        had += (gpus * now_us - begun) / 1e6
        if others_us is not None:
            had -= others_us / 1e6
        had += HEAD_START * weights
        # Numbers that nobody has now are without weight, and nothing is divided by it.
        entitled = weights * (np.add.reduce(had) / np.add.reduce(weights))
        found: Floats = had / np.maximum(entitled, 1e-9)
        return found

    def copy(self) -> "Parties":
        """Independent of this one."""
        other = Parties()
        other.names, other._seen = self.names.copy(), self._seen.copy()
        other._runs, other._known = self._runs.copy(), self._known.copy()
        other._bounded = self._bounded.copy()
        return other
