"""Records of users' and projects' accounts."""

from dataclasses import dataclass
from typing import Literal

from service.db.records.record import Record

AccountKind = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class AccountRecord(Record):
    """A row of `accounts`; None is no value of its own."""

    kind: AccountKind
    name: str
    weight: float | None
    max_gpus: int | None
    max_gpu_hours: float | None
    max_queued: int | None
    max_storage: int | None
    usage: float
    usage_us: int
