"""Equivalence classes: jobs that placement, quotas and shares treat alike, so a refusal of one holds for all."""

from typing import NamedTuple

import numpy as np

from service.scheduler.model.columns import Bools, Ints, grown
from service.scheduler.model.interning import Interner
from service.scheduler.model.nodes import ResourceRequest
from service.scheduler.model.tenants import Tenants

_ROOM = 64
#: Columns of the equivalence classes, as the properties below tell them.
_KIND, _GPUS, _WHOLE, _USER, _PROJECT, _NODES, _PINNED, _PREEMPTIBLE, _RESTARTABLE = range(9)


class EquivalenceClass(NamedTuple):
    """Properties that all jobs of one equivalence class share."""

    resources: ResourceRequest
    nodes: int
    user: str
    project: str
    group: str | None
    preemptible: bool
    pinned: bool
    restartable: bool = False

    @property
    def gpus(self) -> int:
        """GPUs of a job on all its nodes; part of a shared GPU counts as one, since its card is not known yet."""
        return self.nodes * self.resources.gpus


class EquivalenceClasses:
    """The equivalence classes in use, numbered, and their columns."""

    def __init__(self) -> None:
        self.interner: Interner[EquivalenceClass] = Interner()
        self._kinds: Interner[tuple[ResourceRequest, int]] = Interner()
        self.users, self.projects = Tenants(), Tenants()
        #: Equivalence classes of jobs that are pinned.
        self.pinning = 0
        self._columns: Ints = np.zeros((_RESTARTABLE + 1, _ROOM), dtype=np.intp)

    def __len__(self) -> int:
        return len(self.interner.keys)

    def take(self, equivalence: EquivalenceClass) -> int:
        """Count one more job of the class and return the class's number."""
        before = len(self.interner.ids)
        number = self.interner.take(equivalence)
        if len(self.interner.ids) > before:
            self._columns = grown(self._columns, len(self.interner))
            kind = self._kinds.take((equivalence.resources, equivalence.nodes))
            whole = 0 if equivalence.resources.gpu_share else equivalence.resources.gpus
            user, project = self.users.take(equivalence.user), self.projects.take(equivalence.project)
            nodes = equivalence.nodes if whole else 1
            flags = equivalence.pinned, equivalence.preemptible, equivalence.restartable
            self._columns[:, number] = kind, equivalence.gpus, whole, user, project, nodes, *flags
            self.pinning += equivalence.pinned
        return number

    def drop(self, number: int) -> None:
        """Count one job less of the class of that number; the last one frees the number."""
        self.interner.drop(number)
        if self.interner.keys[number] is None:
            values = self._columns[:, number].tolist()
            self.pinning -= values[_PINNED]
            self._kinds.drop(values[_KIND])
            self.users.drop(values[_USER])
            self.projects.drop(values[_PROJECT])

    def change(self, number: int, equivalence: EquivalenceClass) -> int:
        """Move a job from the class of that number to `equivalence`, mostly the same, and return its number."""
        if self.interner.keys[number] == equivalence:
            return number
        changed = self.take(equivalence)
        self.drop(number)
        return changed

    def count(self, number: int, since_us: int, sign: int) -> None:
        """Count a job of the class that has run since `since_us` (`sign` 1), or does so no more (-1)."""
        values = self._columns[:, number].tolist()
        gpus = sign * values[_GPUS]
        self.users.count(values[_USER], gpus, since_us)
        self.projects.count(values[_PROJECT], gpus, since_us)

    def key(self, number: int) -> EquivalenceClass:
        """Return the equivalence class of that number."""
        return self.interner.key(number)

    def _column(self, column: int) -> Ints:
        return self._columns[column, : len(self.interner.keys)]

    @property
    def kind(self) -> Ints:
        """Numbers that are equal for classes that need the same resources on as many nodes."""
        return self._column(_KIND)

    @property
    def gpus(self) -> Ints:
        """GPUs on all nodes of a job."""
        return self._column(_GPUS)

    @property
    def whole(self) -> Ints:
        """GPUs on each node of a job that it does not share."""
        return self._column(_WHOLE)

    @property
    def user(self) -> Ints:
        """Numbers of the classes' users in `users`."""
        return self._column(_USER)

    @property
    def project(self) -> Ints:
        """Numbers of the classes' projects in `projects`."""
        return self._column(_PROJECT)

    @property
    def nodes(self) -> Ints:
        """Nodes on which a job needs `whole` GPUs; 1 if it needs none."""
        return self._column(_NODES)

    @property
    def pinned(self) -> Bools:
        """Flags of the classes whose jobs are pinned."""
        found: Bools = self._column(_PINNED) > 0
        return found

    @property
    def preemptible(self) -> Bools:
        """Flags of the classes whose jobs may be stopped and go on later."""
        found: Bools = self._column(_PREEMPTIBLE) > 0
        return found

    @property
    def restartable(self) -> Bools:
        """Flags of the classes whose jobs may be put back after their trial."""
        found: Bools = self._column(_RESTARTABLE) > 0
        return found

    def copy(self) -> "EquivalenceClasses":
        """Return a copy that later changes of this one do not touch."""
        other = EquivalenceClasses()
        other.interner, other._kinds = self.interner.copy(), self._kinds.copy()
        other.users, other.projects = self.users.copy(), self.projects.copy()
        other._columns, other.pinning = self._columns.copy(), self.pinning
        return other
