"""Quotas and weights of a simulation: read from a file, and checked against the trace before the simulation.

    users:
      "*": {max_gpus: 4}
      ada: {weight: 2, max_gpus: 8, max_gpu_hours: 400}
    projects:
      vision: {max_gpu_hours: 1000}

The names of the limits are those of `yard quota set`; ``*`` is everybody who has no value of their own.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from service.simulator.exceptions import QuotaError
from service.simulator.trace import Cluster, TraceJob
from torchyard import settingsfile
from torchyard.api.sharing import Entitlement

EVERYBODY = "*"
LIMITS = tuple(Entitlement.model_fields)
Kind = Literal["user", "project"]
KINDS: tuple[tuple[Kind, Callable[[TraceJob], str]], ...] = (
    ("user", lambda job: job.user),
    ("project", lambda job: job.project),
)


class QuotaLimits(Entitlement):
    """Quotas and weight of one name in the file."""

    @model_validator(mode="before")
    @classmethod
    def _no_queue(cls, data: object) -> object:
        refused = [name for name in ("max_queued", "max_storage") if isinstance(data, Mapping) and name in data]
        if refused:
            raise ValueError(f"{refused[0]}: a simulation refuses no submission, so leave it out")
        return data


class Quotas(BaseModel):
    """Quotas and weights of users and projects, by their names in the trace; empty without any quota."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    users: dict[str, QuotaLimits] = {}
    projects: dict[str, QuotaLimits] = {}

    def __bool__(self) -> bool:
        return bool(self.users or self.projects)

    def of(self, kind: Kind, names: Iterable[str]) -> dict[str, Entitlement]:
        """Return the limits of each of the names that has any: each value its own, else that of ``*``."""
        given = self.users if kind == "user" else self.projects
        default = given.get(EVERYBODY)
        return {name: _either(given.get(name), default) for name in names if name in given or default}

    def weights(self, users: Iterable[str]) -> dict[str, float]:
        """Return the weights of those users that have one."""
        found = self.of("user", users)
        return {name: own.weight for name, own in found.items() if own.weight is not None}

    def strangers(self, jobs: Sequence[TraceJob]) -> list[str]:
        """Return a warning for each name of the file that the trace does not have."""
        found = []
        for kind, owner in KINDS:
            known = {owner(job) for job in jobs}
            given = self.users if kind == "user" else self.projects
            found += [_stranger(kind, name, known) for name in given if name not in known and name != EVERYBODY]
        return found


def read(path: Path) -> Quotas:
    """Read quotas from a YAML file; raises QuotaError with the field and how to correct it."""
    resources = "quotas are two mappings, `users` and `projects`, such as `users: {ada: {weight: 2, max_gpus: 8}}`"
    return settingsfile.read(path, Quotas, QuotaError, resources)


def startable(jobs: Sequence[TraceJob], cluster: Cluster, quotas: Quotas) -> tuple[list[TraceJob], str | None]:
    """Return the jobs that their quotas let start at some time, and a warning if some are left out.

    Raises QuotaError if none remains.
    """
    limits = {kind: quotas.of(kind, {owner(job) for job in jobs}) for kind, owner in KINDS}
    reasons = [_reason(job, cluster, limits) for job in jobs]
    kept = [job for job, reason in zip(jobs, reasons, strict=True) if reason is None]
    if len(kept) == len(jobs):
        return kept, None
    line, first = min((job.line, reason) for job, reason in zip(jobs, reasons, strict=True) if reason is not None)
    if not kept:
        raise QuotaError(f"no job could ever start: line {line}, {first}: raise the quota")
    left = len(jobs) - len(kept)
    some = "1 job that could never start is" if left == 1 else f"{left:,} jobs that could never start are"
    return kept, f"{some} left out of the simulation; line {line}, {first}"


def _reason(job: TraceJob, cluster: Cluster, limits: Mapping[Kind, Mapping[str, Entitlement]]) -> str | None:
    nodes, resources = cluster.spread(job.gpus)
    gpus = nodes * resources.gpus
    for kind, owner in KINDS:
        own = limits[kind].get(owner(job))
        if own is None:
            continue
        whose = f"of {kind} {owner(job)}"
        if own.max_gpus is not None and gpus > own.max_gpus:
            return f"num_gpus: {gpus} GPUs are more than max_gpus {whose}, {own.max_gpus}"
        if own.max_gpu_hours is not None and own.max_gpu_hours <= 0:
            return f"max_gpu_hours {whose} is 0"
    return None


def _either(own: Entitlement | None, default: Entitlement | None) -> Entitlement:
    given = [each for each in (own, default) if each is not None]
    values = {name: next((v for each in given if (v := getattr(each, name)) is not None), None) for name in LIMITS}
    return Entitlement(**values)


def _stranger(kind: Kind, name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    mend = f"; did you mean {close[0]}?" if close else ""
    return f"{kind}s.{name}: the trace has no jobs of this {kind}{mend}"
