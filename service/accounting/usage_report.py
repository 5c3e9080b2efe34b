"""Reports of usage: GPU-hours by user, project or day, and the digest of a week."""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, case, func, literal, select, true, union_all

from service.accounting import usage
from service.accounting.gpu_time import DAY_US, HOUR_US, UsageKind
from service.accounting.usage import RunningUsage
from service.db.engine import Database
from service.db.models import Attempt, Device, Job, Node, OwnerUsage, User, WastedUsage
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.errors import field_problem
from torchyard.api.sharing import By, Digest, Hours, UsageReport, UsageRow, Waste
from torchyard.ids import AttemptId
from torchyard.translatable import TranslatableText

DEFAULT_DAYS = 28
#: Of a digest: how many wastes it names, from how many GPU-hours on, and how many jobs of each.
WASTES, LEAST_HOURS, NAMED = 5, 0.1, 5
_EPOCH = date(1970, 1, 1)

_WASTES: Mapping[Literal["idle", "failed", "lost"], tuple[str, str]] = {
    "idle": ("held GPUs idle", "set idle_limit, and look whether data are loaded fast enough"),
    "failed": ("failed after", "set checkpoint.every and max_retries, and try new code with a short time_limit"),
    "lost": ("did again or started again", "have them save checkpoints, or save more often (checkpoint.every)"),
}


@dataclass(frozen=True, kw_only=True)
class DateRange:
    """Range of days, both ends included."""

    since: date
    until: date

    @property
    def numbers(self) -> range:
        """Days since 1970-01-01."""
        return range((self.since - _EPOCH).days, (self.until - _EPOCH).days + 1)

    @property
    def span_us(self) -> tuple[int, int]:
        """The first moment, and the first one after."""
        return self.numbers.start * DAY_US, self.numbers.stop * DAY_US


def today(now: int) -> date:
    """Return the day (UTC) of a moment."""
    return _EPOCH + timedelta(days=now // DAY_US)


def days(since: date | None, until: date | None, now: int) -> DateRange:
    """Return the range that was asked for; by default four weeks that end today."""
    last = until or today(now)
    try:
        first = since or last - timedelta(days=DEFAULT_DAYS - 1)
    except OverflowError:
        first = date.min
    if first > last:
        raise field_problem(
            "from",
            TranslatableText(
                "days-reversed",
                "{first} is later than {last}: give the earlier day first",
                first=first.isoformat(),
                last=last.isoformat(),
            ),
        )
    return DateRange(since=first, until=last)


def week(text: str | None, now: int) -> tuple[str, DateRange]:
    """Return a week by its ISO name; without one, the last that is over."""
    if text is None:
        year, number, _ = (today(now) - timedelta(days=7)).isocalendar()
        text = f"{year}-W{number:02}"
    try:
        monday = datetime.strptime(f"{text}-1", "%G-W%V-%u").replace(tzinfo=UTC).date()
        return text, DateRange(since=monday, until=monday + timedelta(days=6))
    except (ValueError, OverflowError) as error:
        raise field_problem(
            "week", TranslatableText("no-week", "{text!r} is no ISO week: write it as 2026-W47", text=text[:20])
        ) from error


@dataclass(kw_only=True)
class UsedTime:
    """GPU time by kind, and the part of it that jobs held which could be stopped for others and go on later."""

    kinds: Counter[UsageKind] = field(default_factory=Counter)
    stoppable_us: int = 0

    def add(self, kind: UsageKind, gpu_us: int, stoppable_us: int) -> None:
        """Add time of one kind."""
        self.kinds[kind] += gpu_us
        self.stoppable_us += stoppable_us


#: GPU time by user, project or day.
UsageByOwner = Mapping[str, UsedTime]


def used(tx: Connection, span: DateRange, by: By, running: Sequence[RunningUsage]) -> UsageByOwner:
    """Return all GPU time of the days, with what runs."""
    numbers = span.numbers
    column: Any = OwnerUsage.day if by == "day" else OwnerUsage.owner
    query = select(column, OwnerUsage.kind, func.sum(OwnerUsage.gpu_us), func.sum(OwnerUsage.stoppable_us))
    # The sums of either kind of owner add up to those of a day.
    inside = OwnerUsage.owner_kind == ("user" if by == "user" else "project")
    inside &= OwnerUsage.day.between(numbers.start, numbers.stop - 1)
    found: defaultdict[str, UsedTime] = defaultdict(UsedTime)
    # Names are looked up of the sums: of each row they would take as long as all else.
    rows = tx.execute(query.where(inside).group_by(column, OwnerUsage.kind)).all()
    users = _names(tx) if by == "user" else {}
    for key, kind, gpu_us, stoppable_us in rows:
        name = _day(key) if by == "day" else users.get(key, key)
        found[name].add(UsageKind(kind), int(gpu_us), int(stoppable_us))
    stoppable = _stoppable(tx, [each.attempt.id for each in running])
    for each in running:
        for (day, kind), gpu_us in each.split.items():
            if day in numbers:
                owner = {"user": each.attempt.user, "project": each.attempt.project, "day": _day(day)}[by]
                found[owner].add(kind, gpu_us, gpu_us if each.attempt.id in stoppable else 0)
    return found


def _names(tx: Connection) -> dict[str, str]:
    """Return the names of all users by id."""
    return {row.id: row.name for row in tx.execute(select(User.id, User.name))}


@dataclass(frozen=True, slots=True)
class _HoldingAttempt(Record):
    """The facts that decide whether an attempt could be stopped for others."""

    id: AttemptId
    spec: StoredSpec
    saves: bool


def _stoppable(tx: Connection, running: Sequence[AttemptId]) -> set[AttemptId]:
    """Return those of the running attempts that could be stopped for others and go on later."""
    if not running:
        return set()
    query = select(Attempt.id, Job.spec, usage.SAVES).join(Job, Job.id == Attempt.job_id)
    rows = _HoldingAttempt.each(tx.execute(query.where(Attempt.id.in_(running))))
    return {each.id for each in rows if each.spec.stoppable(saves=each.saves)}


def _day(number: int) -> str:
    return str(_EPOCH + timedelta(days=number))


def report(db: Database, span: DateRange, by: By, now: int) -> UsageReport:
    """Return the GPU-hours of these days, by user, project or day."""
    with db.read() as tx:
        found = used(tx, span, by, usage.running(tx, now))
    return UsageReport(since=span.since, until=span.until, by=by, rows=_rows(found, by), total=_total(found))


def as_csv(found: UsageReport) -> str:
    """Write a report as a table with a header; GPU-hours."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    kinds = list(Hours.model_fields)
    writer.writerow([found.by, *kinds])
    writer.writerows([row.of, *(f"{getattr(row, kind):.4f}" for kind in kinds)] for row in found.rows)
    return out.getvalue()


def _rows(found: UsageByOwner, by: By) -> list[UsageRow]:
    """Return rows sorted by usage, the most first; days in order."""
    keys = sorted(found) if by == "day" else sorted(found, key=lambda key: (-found[key].kinds.total(), key))
    return [UsageRow(of=key, **_hours(found[key])) for key in keys]


def _total(found: UsageByOwner) -> Hours:
    kinds = sum((each.kinds for each in found.values()), Counter[UsageKind]())
    return Hours(**_hours(UsedTime(kinds=kinds, stoppable_us=sum(each.stoppable_us for each in found.values()))))


def _hours(found: UsedTime) -> dict[str, float]:
    shown = {kind.value: found.kinds[kind] for kind in UsageKind}
    shown |= {"total": found.kinds.total(), "stoppable": found.stoppable_us}
    return {name: round(gpu_us / HOUR_US, 4) for name, gpu_us in shown.items()}


def digest(db: Database, name: str, span: DateRange, now: int) -> Digest:
    """Return one week's usage by user and project, waste with its remedy, utilization and waiting times."""
    with db.read() as tx:
        return _digest(tx, name, span, now)


def _digest(tx: Connection, name: str, span: DateRange, now: int) -> Digest:
    running = usage.running(tx, now)
    found = used(tx, span, "user", running)
    total, capacity = _total(found), _capacity(tx, span, now)
    started, mean_wait_s = _waited(tx, span)
    return Digest(
        week=name,
        since=span.since,
        until=span.until,
        users=_rows(found, "user"),
        projects=_rows(used(tx, span, "project", running), "project"),
        total=total,
        capacity=round(capacity, 4),
        held=round(total.total / capacity, 4) if capacity else None,
        useful=round(total.useful / capacity, 4) if capacity else None,
        started=started,
        mean_wait_s=mean_wait_s,
        wastes=_wastes(tx, span, running),
    )


def _capacity(tx: Connection, span: DateRange, now: int) -> float:
    """Return the GPU-hours that today's devices had since their nodes came."""
    since, until = span.span_us
    query = select(Node.registered_us, func.count()).join(Device, Device.node == Node.name).where(Device.present)
    rows = tx.execute(query.group_by(Node.name, Node.registered_us))
    return sum(max(0, min(until, now) - max(since, row[0])) * row[1] for row in rows) / HOUR_US


def _waited(tx: Connection, span: DateRange) -> tuple[int, float | None]:
    """Return how many jobs started in these days, and their mean waiting time in seconds."""
    since, until = span.span_us
    since_us = case((Job.eligible_us > 0, Job.eligible_us), else_=Job.created_us)
    # The node's clock says when it started.
    waited = func.avg(case((Job.started_us > since_us, Job.started_us - since_us), else_=0))
    inside = (Job.started_us >= since, Job.started_us < until)
    count, mean_us = tx.execute(select(func.count(), waited).where(*inside)).one()
    return count, None if mean_us is None else round(float(mean_us) / 1e6, 1)


@dataclass(frozen=True, kw_only=True)
class _WasteSum:
    """GPU time of a user's jobs that came to nothing in one way."""

    user_id: str
    user: str
    kind: UsageKind
    gpu_us: int
    running: Counter[int]
    """The part of running jobs in microseconds, by number."""

    @property
    def gpu_hours(self) -> float:
        """GPU-hours as a digest tells them."""
        return round(self.gpu_us / HOUR_US, 4)


def _wastes(tx: Connection, span: DateRange, running: Sequence[RunningUsage]) -> list[Waste]:
    """Return the biggest wastes, by whose jobs and by kind, with the mend: of these alone jobs are looked at."""
    so_far: defaultdict[tuple[str, UsageKind], Counter[int]] = defaultdict(Counter)
    for each in running:
        for (day, kind), gpu_us in each.split.items():
            if kind in _WASTES and day in span.numbers:
                so_far[each.attempt.user_id, kind][each.attempt.number] += gpu_us
    users, sums = _names(tx), _wasted(tx, span)
    for key, numbers in so_far.items():
        sums[key] += numbers.total()
    found = [
        _WasteSum(
            user_id=user_id,
            user=users[user_id],
            kind=kind,
            gpu_us=gpu_us,
            running=so_far[user_id, kind],
        )
        for (user_id, kind), gpu_us in sums.items()
    ]
    big = [each for each in found if each.gpu_hours >= LEAST_HOURS]
    biggest = sorted(big, key=lambda each: (-each.gpu_hours, each.user, each.kind))[:WASTES]
    return [_waste(each, *_worst(tx, span, each)) for each in biggest]


def _wasted(tx: Connection, span: DateRange) -> Counter[tuple[str, UsageKind]]:
    """Return the GPU time of ended attempts that came to nothing, by user and kind."""
    kinds = union_all(*(select(literal(str(kind)).label("kind")) for kind in _WASTES)).subquery()
    # One look into an index for each user and kind: grouped, the rows of the week would be sorted.
    own = select(func.sum(WastedUsage.gpu_us)).where(*_own_waste(span, User.id, kinds.c.kind))
    query = select(User.id, kinds.c.kind, own.correlate(User, kinds).scalar_subquery()).join(kinds, true())
    return Counter({(user, UsageKind(kind)): int(us) for user, kind, us in tx.execute(query) if us})


def _own_waste(span: DateRange, user_id: Any, kind: Any) -> list[ColumnElement[bool]]:
    inside = WastedUsage.day.between(span.numbers.start, span.numbers.stop - 1)
    return [WastedUsage.user_id == user_id, WastedUsage.kind == kind, inside]


def _worst(tx: Connection, span: DateRange, waste: _WasteSum) -> tuple[int, list[int]]:
    """Return how many jobs a waste is of, and the numbers of the worst."""
    gpu_us = func.sum(WastedUsage.gpu_us)
    runs, own = WastedUsage.number.in_(waste.running), _own_waste(span, waste.user_id, waste.kind)
    by_job = select(WastedUsage.number, gpu_us.label("gpu_us")).where(*own).group_by(WastedUsage.number)
    ended = by_job.where(~runs).subquery()
    worst = select(ended, func.count().over()).order_by(ended.c.gpu_us.desc(), ended.c.number).limit(NAMED)
    rows = tx.execute(worst).all()
    jobs = Counter({row.number: int(row.gpu_us) for row in rows} | waste.running)
    if waste.running:
        jobs.update({number: int(us) for number, us in tx.execute(by_job.where(runs))})
    count = (rows[0][-1] if rows else 0) + len(waste.running)
    return count, sorted(jobs, key=lambda number: (-jobs[number], number))[:NAMED]


def _waste(waste: _WasteSum, count: int, worst: Sequence[int]) -> Waste:
    name = next(name for name in _WASTES if name == waste.kind)
    deed, mend = _WASTES[name]
    jobs = f"{count} job{'s' if count > 1 else ''}"
    which = ", ".join(map(str, worst)) + (", …" if count > NAMED else "")
    message = f"{jobs} of {waste.user} {deed} {waste.gpu_us / HOUR_US:.1f} GPU-hours ({which}): {mend}"
    return Waste(kind=name, user=waste.user, gpu_hours=waste.gpu_hours, count=count, jobs=list(worst), message=message)
