"""Users, or projects, of the jobs that are known: what runs for them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.scheduler.state import Account

#: GPU-seconds added for each unit of weight.
HEAD_START = 3600.0


class Party:
    """One user, or project, that has jobs."""

    __slots__ = ("begun", "gpus", "lanes")

    def __init__(self, lanes: int = 0, gpus: int = 0, begun: int = 0) -> None:
        #: Lanes of its jobs.
        self.lanes = lanes
        #: GPUs that run for it now, and the sum over them of the moments at which they were given.
        self.gpus, self.begun = gpus, begun


class Parties:
    """By name."""

    def __init__(self) -> None:
        self.known: dict[str, Party] = {}

    def take(self, name: str) -> None:
        """A lane of it more."""
        self.known.setdefault(name, Party()).lanes += 1

    def drop(self, name: str) -> None:
        """A lane of it less."""
        party = self.known[name]
        party.lanes -= 1
        if not party.lanes:
            del self.known[name]

    def count(self, name: str, gpus: int, since_us: int) -> None:
        """So many GPUs more run for it, since then; fewer if negative."""
        party = self.known[name]
        party.gpus += gpus
        party.begun += gpus * since_us

    def bounded(self, accounts: Mapping[str, "Account"]) -> dict[str, "Account"]:
        """The accounts of those with a quota."""
        found = {name: accounts[name] for name in self.known if name in accounts}
        return {name: one for name, one in found.items() if one.max_gpus is not None or one.week_left_us is not None}

    def excess(
        self, accounts: Mapping[str, "Account"], others_us: Mapping[str, float], now_us: int, half_life_us: float
    ) -> dict[str, float]:
        """What each has had, against what it is entitled to (`shares`); `others_us` is time of GPUs that run for it and
        are not its own (`parts`).
        """
        if len(self.known) < 2:
            return dict.fromkeys(self.known, 1.0)
        had, weights = [], []
        for name, party in self.known.items():
            weight, runs = 1.0, (party.gpus * now_us - party.begun) / 1e6
            if name in others_us:
                runs -= others_us[name] / 1e6
            account = accounts.get(name)
            if account is not None:
                weight = account.weight
                runs += account.usage * 2.0 ** ((account.usage_us - now_us) / half_life_us)
            weights.append(weight)
            had.append(runs + HEAD_START * weight)
        fair = sum(had) / sum(weights)
        return {name: each / (weight * fair) for name, each, weight in zip(self.known, had, weights, strict=True)}

    def copy(self) -> "Parties":
        """Independent of this one."""
        other = Parties()
        other.known = {name: Party(party.lanes, party.gpus, party.begun) for name, party in self.known.items()}
        return other
