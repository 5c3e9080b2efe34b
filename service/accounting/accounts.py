"""Accounts of users and projects: weights, quotas, decaying usage.

An account without a value of its own has that of ``*``, everybody's default; without one there, there is no limit and
the weight is 1. Users are named by id here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import BindParameter, Connection, Select, Table, and_, bindparam, case, func, or_, select, update

from service.accounting.gpu_time import DAY_US, HOUR_US
from service.db import upsert
from service.db.models import Account, Job, OwnerUsage, Project, User
from service.db.records.accounting import AccountKind, AccountRecord
from service.errors import ProblemError
from service.scheduler.model import jobs
from torchyard.api import FieldProblem
from torchyard.states import JobState
from torchyard.translatable import TranslatableText

AccountKey = tuple[AccountKind, str]
EVERYBODY = "*"
WEEK_DAYS = 7
_ACCOUNTS = cast("Table", Account.__table__)
LIMITS = ("weight", "max_gpus", "max_gpu_hours", "max_queued", "max_storage")


@dataclass(frozen=True, kw_only=True)
class EffectiveLimits:
    """Weight and quotas of a user or project: its own values, or the defaults."""

    weight: float = 1.0
    max_gpus: int | None = None
    max_gpu_hours: float | None = None
    max_queued: int | None = None
    max_storage: int | None = None


StoredAccounts = Mapping[AccountKey, AccountRecord]

_STORED = select(*_ACCOUNTS.columns)
_NAMES: dict[AccountKind, Select[str]] = {
    "user": select(User.id).order_by(User.id),
    "project": select(Project.name).order_by(Project.name),
}
_OWN = and_(_ACCOUNTS.c.kind == bindparam("own_kind"), _ACCOUNTS.c.name == bindparam("own_name"))
_LOCKED_USAGE = select(_ACCOUNTS.c.usage, _ACCOUNTS.c.usage_us).where(_OWN).with_for_update()
_SET_USAGE = update(_ACCOUNTS).where(_OWN)


def stored(tx: Connection) -> dict[AccountKey, AccountRecord]:
    """Return all accounts that there are, as stored."""
    return _read(tx, _STORED)


def _read(tx: Connection, query: Select[Any], **parameters: str) -> dict[AccountKey, AccountRecord]:
    return {(each.kind, each.name): each for each in AccountRecord.each(tx.execute(query, parameters))}


def limits(records: StoredAccounts, key: AccountKey) -> EffectiveLimits:
    """Return the limits of a user or project."""
    own, default = records.get(key), records.get((key[0], EVERYBODY))
    return _merge(own, default)


def _merge(*given: AccountRecord | None) -> EffectiveLimits:
    """Return the first value that is given, for each limit."""
    found = [record for record in given if record is not None]
    values = {name: next((v for each in found if (v := getattr(each, name)) is not None), None) for name in LIMITS}
    return EffectiveLimits(**{name: value for name, value in values.items() if value is not None})


def names(tx: Connection, kind: AccountKind) -> list[str]:
    """Everybody of a kind: users' ids or projects' names."""
    return list(tx.scalars(_NAMES[kind]))


def for_policy(tx: Connection, kind: AccountKind, known: StoredAccounts, now: int) -> dict[str, jobs.TenantAccount]:
    """Return all accounts of a kind as the policy wants them, by user id or project name; every pass asks."""
    records = {name: record for (of, name), record in known.items() if of == kind}
    limited = any(record.max_gpu_hours is not None for record in records.values())
    week = week_us(tx, kind, now) if limited else Counter[str]()
    default = records.get(EVERYBODY)
    inherited = _merge(default)
    found = {name: _for_policy(inherited, None, week[name]) for name in names(tx, kind)}
    own = {name: record for name, record in records.items() if name in found}
    return found | {name: _for_policy(_merge(each, default), each, week[name]) for name, each in own.items()}


def _for_policy(counts: EffectiveLimits, own: AccountRecord | None, used_us: int) -> jobs.TenantAccount:
    hours = counts.max_gpu_hours
    return jobs.TenantAccount(
        weight=counts.weight,
        usage=0.0 if own is None else own.usage,
        usage_us=0 if own is None else own.usage_us,
        max_gpus=counts.max_gpus,
        week_left_us=None if hours is None else round(hours * HOUR_US) - used_us,
    )


def week_us(tx: Connection, kind: AccountKind, now: int) -> Counter[str]:
    """GPU time of ended attempts in the last seven days. Usage is known by day: of the eighth day back, as much counts
    as lies within.
    """
    today, elapsed = divmod(now, DAY_US)
    rows = tx.execute(_WEEK[kind], {"first": today - WEEK_DAYS})
    return Counter({row[0]: int(row[1]) + int(row[2]) * (DAY_US - elapsed) // DAY_US for row in rows})


def _week(kind: AccountKind) -> Select[Any]:
    """Return the query for the GPU time of each owner: that of whole days, and that of the `first` day."""
    first: BindParameter[int] = bindparam("first")
    days = (OwnerUsage.day > first, OwnerUsage.day == first)
    whole, part = (func.sum(case((day, OwnerUsage.gpu_us), else_=0)) for day in days)
    within = (OwnerUsage.owner_kind == kind, OwnerUsage.day >= first)
    owner: Any = OwnerUsage.owner
    return select(owner, whole, part).where(*within).group_by(owner)


_WEEK: dict[AccountKind, Select[Any]] = {"user": _week("user"), "project": _week("project")}


def week_part(day: int, begun_us: int, now: int) -> float:
    """Return the fraction (0 to 1) of a running attempt's GPU time of a day that lies in the last seven days."""
    since, until = max(begun_us, day * DAY_US), min(now, (day + 1) * DAY_US)
    inside = until - max(since, now - WEEK_DAYS * DAY_US)
    return max(0.0, inside / (until - since)) if since < until else 1.0


def decayed(usage: float, since_us: int, now: int, half_life_s: float) -> float:
    """Usage as it counts now."""
    return float(usage * 0.5 ** (max(0, now - since_us) / (half_life_s * 1e6)))


def charge(tx: Connection, key: AccountKey, gpu_s: float, now: int, half_life_s: float) -> None:
    """Add GPU-seconds to the decaying usage of an account."""
    kind, name = key
    own = {"own_kind": kind, "own_name": name}
    row = tx.execute(_LOCKED_USAGE, own).one_or_none()
    if row is None:
        tx.execute(_add_account(tx), {"kind": kind, "name": name})
        row = tx.execute(_LOCKED_USAGE, own).one()
    had = decayed(row.usage, row.usage_us, now, half_life_s)
    tx.execute(_SET_USAGE, {**own, "usage": had + gpu_s, "usage_us": max(now, row.usage_us)})


@upsert.made_once
def _add_account(into: upsert.Into) -> upsert.Insert:
    return into(Account).on_conflict_do_nothing()


def set_limits(tx: Connection, key: AccountKey, values: Mapping[str, float | int | None]) -> None:
    """Set values of an account; None takes one away."""
    kind, name = key
    row = upsert.insert(tx, Account).values(kind=kind, name=name, **values)
    tx.execute(
        row.on_conflict_do_update(index_elements=["kind", "name"], set_=dict(values))
        if values
        else row.on_conflict_do_nothing()
    )


def check_queued(tx: Connection, owner: tuple[str, str], project: str, more: int, *, lock: bool) -> None:
    """Refuse `more` waiting jobs than the quotas of user (an id and a name) and project allow.

    With `lock`, submissions which overlap cannot pass together; the transaction must be one that writes.
    """
    user, user_name = owner
    records = _read(tx, _LOCKED_LIMITS if lock else _SUBMISSION_LIMITS, user=user, project=project)
    if records:
        _check_one(tx, limits(records, ("user", user)), Job.user_id == user, ("user", user_name), more)
        _check_one(tx, limits(records, ("project", project)), Job.project == project, ("project", project), more)


def of_submission(tx: Connection, user: str, project: str) -> dict[AccountKey, EffectiveLimits]:
    """Return the limits of the user (an id) and the project that a submission counts for."""
    records = _read(tx, _SUBMISSION_LIMITS, user=user, project=project)
    keys: tuple[AccountKey, ...] = (("user", user), ("project", project))
    return {key: limits(records, key) for key in keys} if records else {}


#: Built once: every submission asks.
_SUBMISSION_LIMITS = (
    select(*_ACCOUNTS.columns)
    .where(
        or_(_ACCOUNTS.c.max_queued.is_not(None), _ACCOUNTS.c.max_storage.is_not(None)),
        or_(
            and_(_ACCOUNTS.c.kind == "user", _ACCOUNTS.c.name.in_((bindparam("user"), EVERYBODY))),
            and_(_ACCOUNTS.c.kind == "project", _ACCOUNTS.c.name.in_((bindparam("project"), EVERYBODY))),
        ),
    )
    .order_by(_ACCOUNTS.c.kind, _ACCOUNTS.c.name)
)
_LOCKED_LIMITS = _SUBMISSION_LIMITS.with_for_update()


def _check_one(tx: Connection, counts: EffectiveLimits, theirs: Any, key: AccountKey, more: int) -> None:
    most = counts.max_queued
    if most is None:
        return
    waiting = tx.scalar(select(func.count()).where(Job.state == JobState.QUEUED, theirs)) or 0
    if waiting + more <= most:
        return
    kind, name = key
    message = TranslatableText(
        "quota-queued",
        "{who} has {waiting} of at most {most} waiting jobs, which leaves no room for {more} more: wait until "
        "some have started, cancel some, or ask an administrator for "
        "`yard quota set {kind} {name} --max-queued {needed}`",
        who=words(key),
        kind=kind,
        name=name,
        waiting=waiting,
        most=most,
        more=more,
        needed=waiting + more,
    )
    raise ProblemError(
        "forbidden", f"max_queued: {message}", errors=[FieldProblem(field="max_queued", message=message)]
    )


def words(key: AccountKey) -> TranslatableText:
    """Return what an account is called in messages."""
    kind, name = key
    if kind == "user":
        return TranslatableText("the-user", "user {name}", name=name)
    return TranslatableText("the-project", "project {name}", name=name)


def queued(tx: Connection, kind: AccountKind) -> dict[str, int]:
    """Return the number of waiting jobs, by user id or project name."""
    owner = Job.user_id if kind == "user" else Job.project
    query = select(owner, func.count()).where(Job.state == JobState.QUEUED).group_by(owner)
    return {row[0]: row[1] for row in tx.execute(query)}


def shares(weights: Mapping[str, float], active: Sequence[str]) -> dict[str, float]:
    """Return the part of the box that each of those who want something is entitled to."""
    whole = sum(weights[name] for name in active)
    return {name: weights[name] / whole for name in active} if whole else {}
