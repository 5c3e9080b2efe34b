"""Jobs alike in all that placement, quotas and shares look at: what is refused to one is refused to all."""

from typing import NamedTuple

import numpy as np

from service.scheduler.model.columns import Bools, Ints, grown
from service.scheduler.model.interning import Interner
from service.scheduler.model.nodes import ResourceRequest
from service.scheduler.model.tenants import Tenants

_ROOM = 64


class EquivalenceClass(NamedTuple):
    """What such jobs have in common."""

    resources: ResourceRequest
    nodes: int
    user: str
    project: str
    group: str | None
    preemptible: bool
    pinned: bool

    @property
    def gpus(self) -> int:
        """GPUs on all its nodes; part of a shared one is a whole one: which card it will be is not known."""
        return self.nodes * self.resources.gpus


class EquivalenceClasses:
    """The equivalence classes in use, numbered, and their columns."""

    def __init__(self) -> None:
        self.interner: Interner[EquivalenceClass] = Interner()
        self._kinds: Interner[tuple[ResourceRequest, int]] = Interner()
        self.users, self.projects = Tenants(), Tenants()
        #: Equivalence classes of jobs that are pinned.
        self.pinning = 0
        #: The number of its kind, GPUs of all nodes, whole GPUs of each node, the numbers of its user and its project,
        #: nodes on which it has whole GPUs, 1 if its jobs are pinned.
        self._columns: Ints = np.zeros((7, _ROOM), dtype=np.intp)

    def __len__(self) -> int:
        return len(self.interner.keys)

    def take(self, equivalence: EquivalenceClass) -> int:
        """The equivalence class's number."""
        before = len(self.interner.ids)
        number = self.interner.take(equivalence)
        if len(self.interner.ids) > before:
            self._columns = grown(self._columns, len(self.interner))
            kind = self._kinds.take((equivalence.resources, equivalence.nodes))
            whole = 0 if equivalence.resources.gpu_share else equivalence.resources.gpus
            user, project = self.users.take(equivalence.user), self.projects.take(equivalence.project)
            nodes = equivalence.nodes if whole else 1
            self._columns[:, number] = kind, equivalence.gpus, whole, user, project, nodes, equivalence.pinned
            self.pinning += equivalence.pinned
        return number

    def drop(self, number: int) -> None:
        """One job of it less."""
        self.interner.drop(number)
        if self.interner.keys[number] is None:
            kind, _, _, user, project, _, pinned = self._columns[:, number].tolist()
            self.pinning -= pinned
            self._kinds.drop(kind)
            self.users.drop(user)
            self.projects.drop(project)

    def change(self, number: int, equivalence: EquivalenceClass) -> int:
        """The equivalence class of a job that had that number: mostly the same."""
        if self.interner.keys[number] == equivalence:
            return number
        changed = self.take(equivalence)
        self.drop(number)
        return changed

    def count(self, number: int, since_us: int, sign: int) -> None:
        """A job of the equivalence class runs since then (1), or does so no more (-1)."""
        _, gpus, _, user, project, _, _ = self._columns[:, number].tolist()
        self.users.count(user, sign * gpus, since_us)
        self.projects.count(project, sign * gpus, since_us)

    def key(self, number: int) -> EquivalenceClass:
        """The equivalence class of that number."""
        return self.interner.key(number)

    @property
    def kind(self) -> Ints:
        """The same for equivalence classes that need the same of as many nodes."""
        return self._columns[0, : len(self.interner.keys)]

    @property
    def gpus(self) -> Ints:
        """GPUs on all nodes of a job."""
        return self._columns[1, : len(self.interner.keys)]

    @property
    def whole(self) -> Ints:
        """GPUs on each node of a job that nobody else may use."""
        return self._columns[2, : len(self.interner.keys)]

    @property
    def user(self) -> Ints:
        """Numbers in `users`."""
        return self._columns[3, : len(self.interner.keys)]

    @property
    def project(self) -> Ints:
        """Numbers in `projects`."""
        return self._columns[4, : len(self.interner.keys)]

    @property
    def nodes(self) -> Ints:
        """Nodes on which a job needs `whole` GPUs; 1 if it needs none."""
        return self._columns[5, : len(self.interner.keys)]

    @property
    def pinned(self) -> Bools:
        """Whether its jobs are pinned."""
        found: Bools = self._columns[6, : len(self.interner.keys)] > 0
        return found

    def copy(self) -> "EquivalenceClasses":
        """Independent of this one."""
        other = EquivalenceClasses()
        other.interner, other._kinds = self.interner.copy(), self._kinds.copy()
        other.users, other.projects = self.users.copy(), self.projects.copy()
        other._columns, other.pinning = self._columns.copy(), self.pinning
        return other
