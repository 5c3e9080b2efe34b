"""Quotas as people see and set them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, func, select

from service.accounting import accounts, storage, usage
from service.accounting.accounts import EVERYBODY, AccountKey
from service.accounting.gpu_time import HOUR_US
from service.accounting.policy_settings import current_policy
from service.accounting.storage import HeldStorage
from service.accounting.usage import RunningUsage
from service.db.engine import Database
from service.db.models import Allocation, Attempt, Job, User
from service.db.records.accounting import AccountKind, AccountRecord
from service.identity import audit, project_names, users
from service.identity.callers import Caller
from torchyard.api.sharing import Quota, QuotaValues, Standing

#: GPU-seconds of usage from which on somebody counts among those who share the box.
NOTICED_S = 36.0
KINDS: tuple[AccountKind, ...] = ("user", "project")


def quotas(db: Database, caller: Caller, now: int) -> list[Quota]:
    """Return the quotas that the caller may see, the defaults first: of users, only administrators see others'."""
    with db.read() as tx:
        running = usage.running(tx, now, idle=False)
        found = [quota for kind in KINDS for quota in _of_kind(tx, kind, running, now)]
    if caller.admin:
        return found
    return [each for each in found if each.kind == "project" or each.name in (caller.name, EVERYBODY)]


def quota(tx: Connection, kind: AccountKind, name: str, now: int) -> Quota:
    """Return one quota, by the name that people use."""
    return next(each for each in _of_kind(tx, kind, usage.running(tx, now, idle=False), now) if each.name == name)


def set_quota(db: Database, caller: Caller, kind: AccountKind, name: str, values: QuotaValues, now: int) -> Quota:
    """Set the given values, None removes one; ``not-found`` for an unknown name."""
    given = values.model_dump(include=values.model_fields_set)
    with db.unit_of_work(now) as unit:
        accounts.set_limits(unit.tx, _key(unit.tx, kind, name), given)
        audit.record(unit.tx, caller, "quota.set", f"{kind}/{name}", now, **given)
        unit.wake_scheduler()
        return quota(unit.tx, kind, name, now)


def _key(tx: Connection, kind: AccountKind, name: str) -> AccountKey:
    if name == EVERYBODY:
        return kind, name
    if kind == "user":
        return kind, users.by_name(tx, name).id
    project_names.check(tx, name)
    return kind, name


def _of_kind(tx: Connection, kind: AccountKind, running: Sequence[RunningUsage], now: int) -> list[Quota]:
    stored = accounts.stored(tx)
    names = _names(tx, kind)
    counts = {key: accounts.limits(stored, (kind, key)) for key in names}
    seen = _Consumption.of(tx, kind, running, now)
    usages = {key: seen.usage_s(stored.get((kind, key)), key) for key in names}
    active = [key for key in names if usages[key] >= NOTICED_S or key in seen.gpus or seen.queued.get(key)]
    weights = {key: each.weight for key, each in counts.items()}
    default = _own(stored.get((kind, EVERYBODY)))
    found = [Quota(kind=kind, name=EVERYBODY, own=default, effective=default, standing=None)]
    for key, name in names.items():
        standing = Standing(
            gpus=seen.gpus.get(key, 0),
            gpu_hours=round(seen.week_us[key] / HOUR_US, 4),
            queued=seen.queued.get(key, 0),
            storage=seen.storage.total(key),
            code=seen.storage.code[key],
            usage=round(usages[key] / 3600, 4),
            used=round(usages[key] / (sum(usages.values()) or 1.0), 6),
            share=round(accounts.shares(weights, [*active, key] if key not in active else active)[key], 6),
        )
        effective = QuotaValues.model_construct(**asdict(counts[key]))
        own = _own(stored.get((kind, key)))
        found.append(Quota(kind=kind, name=name, own=own, effective=effective, standing=standing))
    return found


def _own(record: AccountRecord | None) -> QuotaValues:
    return QuotaValues.model_construct(**{name: getattr(record, name) for name in accounts.LIMITS} if record else {})


def _names(tx: Connection, kind: AccountKind) -> dict[str, str]:
    """Return names as people use them, by user id or project name."""
    if kind == "project":
        return {name: name for name in accounts.names(tx, "project")}
    return {row.id: row.name for row in tx.execute(select(User.id, User.name).order_by(User.name))}


@dataclass(frozen=True, kw_only=True)
class _Consumption:
    """Resources that users or projects have now, by user id or project name."""

    gpus: dict[str, int]
    queued: dict[str, int]
    storage: HeldStorage
    #: GPU time of the last seven days, with what runs; and all of what runs.
    week_us: Counter[str]
    running_us: Counter[str]
    now: int
    half_life_s: float

    @classmethod
    def of(cls, tx: Connection, kind: AccountKind, running: Sequence[RunningUsage], now: int) -> "_Consumption":
        week_us, running_us = accounts.week_us(tx, kind, now), Counter[str]()
        for each in running:
            owner = each.attempt.user_id if kind == "user" else each.attempt.project
            running_us[owner] += each.split.total()
            for (day, _), gpu_us in each.split.items():
                week_us[owner] += round(gpu_us * accounts.week_part(day, each.attempt.created_us, now))
        return cls(
            gpus=_gpus(tx, kind),
            queued=accounts.queued(tx, kind),
            storage=storage.held(tx, kind),
            week_us=week_us,
            running_us=running_us,
            now=now,
            half_life_s=current_policy(tx).half_life,
        )

    def usage_s(self, record: AccountRecord | None, key: str) -> float:
        """GPU-seconds that still count."""
        ended = 0.0
        if record is not None:
            ended = accounts.decayed(record.usage, record.usage_us, self.now, self.half_life_s)
        return ended + self.running_us[key] / 1e6


def _gpus(tx: Connection, kind: AccountKind) -> dict[str, int]:
    """Return GPUs as the scheduler counts them against `max_gpus`: part of one is one."""
    owner = Job.user_id if kind == "user" else Job.project
    query = (
        select(owner, func.count())
        .join_from(Allocation, Attempt, Attempt.id == Allocation.attempt_id)
        .join(Job, Job.id == Attempt.job_id)
        .where(Allocation.live)
        .group_by(owner)
    )
    return {row[0]: row[1] for row in tx.execute(query)}
