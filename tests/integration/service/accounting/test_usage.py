"""GPU time is charged at the end of each attempt, to whose it was, by what became of it."""

from collections import Counter
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from service import lifecycle
from service.accounting import accounts, quotas, usage, usage_report
from service.accounting.gpu_time import DAY_US, UsageKind
from service.accounting.policy_settings import current_policy, set_policy
from service.db.engine import Database
from service.db.models import (
    Account,
    Allocation,
    Attempt,
    Checkpoint,
    Job,
    Node,
    OwnerUsage,
    Sample,
    Usage,
    User,
    WastedUsage,
)
from service.estimation.forecasts import Estimator
from service.scheduler.policy.quotas import RemainingQuotas
from service.scheduler.policy.shares import shares
from service.scheduler_cache.load import Loader
from tests.support import box, statements
from tests.support.box import NOW
from torchyard.ids import new_id
from torchyard.spec.policy import Policy
from torchyard.states import StopReason
from torchyard.wire import Result, ResultKind

HOUR = 3_600_000_000
#: Noon.
START = NOW - NOW % DAY_US + DAY_US // 2


def add_run(db: Database, uuids: list[str], *, hours: float, **spec: Any) -> tuple[str, str]:
    """A job that was given devices `hours` before `START`, half an hour before its first instruction."""
    job = box.add_job(db, len(uuids), **spec)
    attempt = again(db, job, uuids, hours=hours)
    with db.write() as tx:
        tx.execute(update(Job).where(Job.id == job).values(started_us=START - round(hours * HOUR) + HOUR // 2))
    return job, attempt


def again(db: Database, job: str, uuids: list[str], *, hours: float) -> str:
    """As `add_run`, for a job that is there."""
    attempt = box.start(db, job, uuids)
    since = START - round(hours * HOUR)
    with db.write() as tx:
        tx.execute(update(Allocation).where(Allocation.attempt_id == attempt).values(created_us=since))
        own = update(Attempt).where(Attempt.id == attempt)
        tx.execute(own.values(created_us=since, started_us=since + HOUR // 2))
    return attempt


def end(db: Database, attempt: str, **values: Any) -> None:
    """Ends an attempt at `START`; by default its process exited with 0."""
    fields = {"kind": ResultKind.EXITED, "exit_code": 0, "ended_us": START} | values
    started = box.attempt_row(db, attempt).started_us
    with db.write() as tx:
        lifecycle.finish(tx, attempt, Result(started_us=started, **fields), START)


def hours(db: Database) -> dict[UsageKind, float]:
    """What all were charged, in hours by kind; the sums of users and projects must be of the same."""
    found: Counter[UsageKind] = Counter()
    owned: Counter[tuple[Any, ...]] = Counter()
    with db.read() as tx:
        for row in tx.execute(select(Usage.__table__)):
            found[UsageKind(row.kind)] += row.gpu_us
            for owner in (("user", row.user_id), ("project", row.project)):
                owned[*owner, row.day, row.kind, "gpu"] += row.gpu_us
                owned[*owner, row.day, row.kind, "stoppable"] += row.stoppable_us
        for row in tx.execute(select(OwnerUsage.__table__)):
            owned[row.owner_kind, row.owner, row.day, row.kind, "gpu"] -= row.gpu_us
            owned[row.owner_kind, row.owner, row.day, row.kind, "stoppable"] -= row.stoppable_us
    assert not any(owned.values())
    return {kind: round(value / HOUR, 3) for kind, value in found.items()}


@pytest.fixture
def gpus(db: Database) -> list[str]:
    """A box of two GPUs."""
    box.add_people(db)
    return box.add_node(db)


def test_a_run_that_succeeds(db: Database, gpus: list[str]) -> None:
    _, attempt = add_run(db, gpus, hours=4)
    with db.read() as tx:
        (so_far,) = usage.running(tx, START - HOUR)
    assert so_far.split.total() == 2 * 3 * HOUR
    end(db, attempt)
    assert hours(db) == {UsageKind.IDLE: 1, UsageKind.USEFUL: 7}
    with db.read() as tx:
        assert usage.running(tx, START) == []
    assert usage.read_split(box.attempt_row(db, attempt).gpu_time).total() == 8 * HOUR
    end(db, attempt)  # told again
    assert sum(hours(db).values()) == 8


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_a_clock_that_is_set_meanwhile_is_charged_to_nobody(db: Database, gpus: list[str], step_s: int) -> None:
    """A short job during which the clock of service and node was set."""
    job = box.add_job(db)
    attempt = box.start(db, job, gpus[:1])
    step = step_s * 1_000_000
    with db.write() as tx:
        began = NOW + 200_000
        for table in (Job, Attempt):
            tx.execute(update(table).values(started_us=began))
        told = {"started_us": began, "ended_us": began + 300_000, "held_us": 600_000}
        lifecycle.finish(tx, attempt, Result(kind=ResultKind.EXITED, exit_code=0, **told), NOW + 700_000 + step)
    with db.read() as tx:
        charged = {row.kind: row.gpu_us for row in tx.execute(select(Usage.kind, Usage.gpu_us))}
    assert charged[UsageKind.USEFUL] >= 300_000
    assert 600_000 <= sum(charged.values()) <= 600_001 + usage.ANSWER_US
    row = box.job_row(db, job)
    assert row.ended_us - row.started_us == row.ran_us == 300_000


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_clock_that_is_set_does_not_show_while_it_runs(db: Database, gpus: list[str], step: int) -> None:
    """A job that has run for a minute when the clock of the service is set."""
    job = box.add_job(db)
    attempt = box.start(db, job, gpus[:1])
    minute = HOUR // 60
    told = {"held_us": {attempt: minute}, "last_seen_us": NOW + minute}
    with db.write() as tx:
        tx.execute(update(Attempt).where(Attempt.id == attempt).values(started_us=NOW, claimed_us=NOW))
        tx.execute(update(Node).values(**told))
    shown = []
    for now in (NOW + minute, NOW + minute + step):
        with db.read() as tx:
            (so_far,) = usage.running(tx, now)
        shown.append(so_far.split.total())
    assert shown[0] == minute
    assert minute <= shown[1] <= minute + usage.SILENCE_US
    with db.write() as tx:  # the next heartbeat
        tx.execute(update(Node).values(held_us={attempt: minute + 1}, last_seen_us=NOW + minute + step))
    with db.read() as tx:
        (so_far,) = usage.running(tx, NOW + minute + step)
    assert so_far.split.total() == minute + 1


def test_a_node_that_is_not_heard_holds_what_it_held(db: Database, gpus: list[str]) -> None:
    attempt = box.start(db, box.add_job(db), gpus[:1])
    with db.write() as tx:
        tx.execute(update(Attempt).where(Attempt.id == attempt).values(claimed_us=NOW))
        tx.execute(update(Node).values(held_us={attempt: HOUR}, last_seen_us=NOW + HOUR, unreachable=True))
    with db.read() as tx:
        (so_far,) = usage.running(tx, NOW + 3 * HOUR)
    assert so_far.split.total() == 3 * HOUR


def test_times_of_an_older_worker_are_never_negative(db: Database, gpus: list[str]) -> None:
    job = box.add_job(db)
    attempt = box.start(db, job, gpus[:1])
    with db.write() as tx:
        tx.execute(update(Attempt).where(Attempt.id == attempt).values(started_us=NOW))
        told = Result(kind=ResultKind.EXITED, exit_code=0, started_us=NOW, ended_us=NOW - HOUR)
        lifecycle.finish(tx, attempt, told, NOW - HOUR)
    row = box.job_row(db, job)
    assert (row.ran_us, row.ended_us - row.started_us) == (0, 0)
    assert hours(db) == {}


def test_time_is_of_its_day(db: Database, gpus: list[str]) -> None:
    _, attempt = add_run(db, gpus[:1], hours=20)
    end(db, attempt)
    with db.read() as tx:
        rows = tx.execute(select(Usage.day, Usage.gpu_us).where(Usage.kind == UsageKind.USEFUL))
        days = {row.day: row.gpu_us for row in rows}
    today = START // DAY_US
    assert days == {today - 1: 7.5 * HOUR, today: 12 * HOUR}


def test_a_failure_that_nobody_continues(db: Database, gpus: list[str]) -> None:
    _, attempt = add_run(db, gpus[:1], hours=4)
    end(db, attempt, exit_code=1)
    assert hours(db) == {UsageKind.IDLE: 0.5, UsageKind.FAILED: 3.5}


def add_checkpoint(db: Database, job: str, attempt: str, at_us: int, state: str = "stored") -> None:
    with db.write() as tx:
        values = {"id": new_id("ckpt"), "job_id": job, "attempt_id": attempt, "name": f"step-{at_us}", "step": 1}
        tx.execute(insert(Checkpoint).values(**values, state=state, metrics={}, size=0, created_us=at_us))


def test_what_a_retry_does_again_is_lost(db: Database, gpus: list[str]) -> None:
    job, attempt = add_run(db, gpus[:1], hours=4, max_retries=1)
    add_checkpoint(db, job, attempt, START - HOUR, "committed")
    add_checkpoint(db, job, attempt, START - HOUR // 2, "deleted")
    end(db, attempt, exit_code=1)
    assert hours(db) == {UsageKind.IDLE: 0.5, UsageKind.USEFUL: 2.5, UsageKind.LOST: 1}
    end(db, again(db, job, gpus[:1], hours=0.5 + 1))
    assert hours(db) == {UsageKind.IDLE: 0.5, UsageKind.USEFUL: 3.5, UsageKind.LOST: 1.5}


def test_a_preemption_after_a_checkpoint_loses_little(db: Database, gpus: list[str]) -> None:
    job, attempt = add_run(db, gpus, hours=4)
    add_checkpoint(db, job, attempt, START - HOUR // 100)
    with db.write() as tx:
        lifecycle.request_stop(tx, job, StopReason.PREEMPT, None, START - HOUR // 50)
    end(db, attempt, stop=StopReason.PREEMPT, stopped_at_step=1)
    assert hours(db) == {UsageKind.IDLE: 1, UsageKind.USEFUL: 6.98, UsageKind.LOST: 0.02}


def test_what_the_samples_show_idle_is_idle(db: Database, gpus: list[str]) -> None:
    _, attempt = add_run(db, gpus, hours=2)
    with db.write() as tx:
        for minute in range(90):
            busy = {"gpu.0.utilization": 97.0, "gpu.1.utilization": 0.0 if minute < 60 else 88.0}
            at = {"node": "box", "attempt_id": attempt, "time_us": START - (90 - minute) * 60_000_000}
            tx.execute(insert(Sample).values(**at, values=busy))
    end(db, attempt)
    found = hours(db)
    assert found[UsageKind.IDLE] + found[UsageKind.USEFUL] == 4
    # Of each minute one sample speaks for one bucket, a five-hundredth of the time.
    assert found[UsageKind.IDLE] == pytest.approx(1 + 60 * 2 / 500, abs=0.05)


def test_part_of_a_shared_device_counts_as_that_part(db: Database, gpus: list[str]) -> None:
    _, attempt = add_run(db, gpus[:1], hours=4)
    with db.write() as tx:
        tx.execute(update(Allocation).where(Allocation.attempt_id == attempt).values(share=20 * box.GIB))
    with db.read() as tx:
        standing = quotas.quota(tx, "user", "ada", START).standing
    assert standing is not None
    assert (standing.gpus, standing.gpu_hours) == (1, 1), "against max_gpus it counts whole, as in the scheduler"
    end(db, attempt)
    assert sum(hours(db).values()) == 1


def test_the_policy_counts_part_of_a_shared_device_as_people_see_it(db: Database, gpus: list[str]) -> None:
    _, attempt = add_run(db, gpus[:1], hours=4, resources={"gpu_share": "20GiB"})
    waiting = {"ada": box.add_job(db), "bob": box.add_job(db)}
    with db.write() as tx:
        tx.execute(insert(User).values(id="user-bob", name="bob", created_us=NOW))
        tx.execute(update(Job).where(Job.id == waiting["bob"]).values(user_id="user-bob"))
        accounts.set_limits(tx, ("user", "user-ada"), {"max_gpu_hours": 1})
    with Loader(disk_floor=box.GIB, estimator=Estimator()).snapshot(db, START) as (tx, state):
        standings = {name: quotas.quota(tx, "user", name, START).standing for name in waiting}
    ids = {name: state.table.class_id[state.table.rows[job]] for name, job in waiting.items()}
    ada, bob = standings["ada"], standings["bob"]
    assert ada is not None
    assert bob is not None
    (week,) = RemainingQuotas(state, START).reached(state.classes.key(int(ids["ada"])))
    assert (ada.gpu_hours, week.used / HOUR) == (1, 1)
    assert not RemainingQuotas(state, START - 60_000_000).reached(state.classes.key(int(ids["ada"]))), (
        "a minute ago some was left"
    )
    had = {"ada": ada.usage + 1, "bob": bob.usage + 1}
    assert had == {"ada": 2, "bob": 1}, "with the hour that all are given"
    assert shares(state, START, Policy()).worst[ids["ada"]] == had["ada"] / (sum(had.values()) / 2)
    end(db, attempt)
    with db.read() as tx:
        assert accounts.for_policy(tx, "user", accounts.stored(tx), START)["user-ada"].usage == ada.usage * 3600


def test_of_a_long_run_the_quota_shows_the_last_seven_days(db: Database, gpus: list[str]) -> None:
    """What runs, before and after it ends: the eighth day back counts as far as it lies within."""
    add_run(db, gpus[:1], hours=30 * 24)
    _, attempt = add_run(db, gpus[1:], hours=7 * 24 + 6)

    def shown() -> float:
        with db.read() as tx:
            standing = quotas.quota(tx, "user", "ada", START).standing
        assert standing is not None
        return standing.gpu_hours

    assert shown() == 2 * 7 * 24
    end(db, attempt)
    assert shown() == 2 * 7 * 24 - 3, "of ended runs only the day is known: half of its 18 h count, not 12"


def test_what_runs_takes_no_more_questions_the_more_of_it_there_is(db: Database) -> None:
    box.add_people(db)
    gpus = box.add_node(db, devices=4)

    def questions() -> int:
        with statements.asked(db) as told:
            usage_report.report(db, usage_report.days(None, None, START), "user", START)
        return len(told)

    runs = [add_run(db, gpus[:1], hours=4)[1]]
    with db.write() as tx:
        samples = [
            {"node": "box", "attempt_id": runs[0], "time_us": START - minute * 60_000_000, "values": busy}
            for minute, busy in ((170, {"gpu.0.utilization": 0.0}), (100, {"gpu.0.utilization": 50.0}))
        ]
        tx.execute(insert(Sample), samples)
    alone = questions()
    runs += [add_run(db, [uuid], hours=hours)[1] for uuid, hours in zip(gpus[1:], (1, 2, 400), strict=True)]
    assert questions() == alone
    with db.read() as tx:
        found = {each.attempt.id: each.split for each in usage.running(tx, START)}
    assert [found[run].total() for run in runs] == [4 * HOUR, HOUR, 2 * HOUR, 400 * HOUR]
    idle = [sum(us for (_, kind), us in found[run].items() if kind is UsageKind.IDLE) for run in runs]
    assert [us - HOUR // 2 for us in idle] == [4 * HOUR // usage.SAMPLES_RUNNING, 0, 0, 0]


def test_an_attempt_that_nobody_claimed_is_charged_to_nobody(db: Database, gpus: list[str]) -> None:
    attempt = box.assign(db, box.add_job(db), gpus[:1])
    with db.write() as tx:
        lifecycle.void(tx, attempt, "nobody came", START)
    assert hours(db) == {}


def test_usage_decays_with_the_half_life_of_the_policy(db: Database, gpus: list[str]) -> None:
    with db.write() as tx:
        set_policy(tx, Policy(half_life=86400))
    for _ in range(2):
        _, attempt = add_run(db, gpus[:1], hours=1)
        end(db, attempt)
        with db.write() as tx:
            tx.execute(update(Account).values(usage_us=Account.usage_us - DAY_US))
    with db.read() as tx:
        half_life = current_policy(tx).half_life
        rows = accounts.stored(tx)
    assert set(rows) == {("user", "user-ada"), ("project", "default")}
    for row in rows.values():
        assert row.usage == pytest.approx(3600 * 1.5)
        assert accounts.decayed(row.usage, row.usage_us, START, half_life) == pytest.approx(3600 * 0.75)


def test_the_part_that_could_have_been_shared(db: Database, gpus: list[str]) -> None:
    _, ended = add_run(db, gpus[:1], hours=4, preemptible=True)
    end(db, ended)
    _, ended = add_run(db, gpus[:1], hours=2, preemptible=False)
    end(db, ended)
    add_run(db, gpus[:1], hours=1, restartable=True)
    _, saves = add_run(db, gpus[1:], hours=3)

    def shown() -> list[tuple[str, float, float]]:
        by_user = usage_report.report(db, usage_report.days(None, None, START), "user", START)
        assert by_user.total.stoppable == by_user.rows[0].stoppable
        by_day = usage_report.report(db, usage_report.days(None, None, START), "day", START)
        assert sum(row.stoppable for row in by_day.rows) == pytest.approx(by_user.total.stoppable, abs=1e-3)
        return [(row.of, row.total, row.stoppable) for row in by_user.rows]

    assert shown() == [("ada", 10, 5)]
    box.add_checkpoint(db, saves, 1)
    assert shown() == [("ada", 10, 8)]
    digest = usage_report.digest(db, *usage_report.week(f"{usage_report.today(START):%G-W%V}", START), START)
    assert (digest.total.stoppable, digest.projects[0].stoppable) == (8, 8)


def test_the_digest_names_wastes_and_whose_they_are(db: Database, gpus: list[str]) -> None:
    for _ in range(2):
        _, attempt = add_run(db, gpus[:1], hours=4)
        end(db, attempt, exit_code=1)
    job, _ = add_run(db, gpus[1:], hours=1)
    name, span = usage_report.week(f"{usage_report.today(START):%G-W%V}", START)
    with db.write() as tx:
        tx.execute(update(Job).where(Job.id == job).values(eligible_us=START - 2 * HOUR))
        tx.execute(update(Node).values(registered_us=START - 10 * HOUR))
    digest = usage_report.digest(db, name, span, START)
    (ada,) = digest.users
    assert (ada.of, ada.failed, ada.idle, ada.useful, ada.total) == ("ada", 7, 1.5, 0.5, 9)
    assert [row.of for row in digest.projects] == ["default"]
    assert (digest.capacity, digest.held, digest.useful) == (20, 0.45, 0.025)
    assert digest.started == 3
    assert [(waste.kind, waste.gpu_hours, waste.count) for waste in digest.wastes] == [
        ("failed", 7, 2),
        ("idle", 1.5, 3),
    ]
    before = usage_report.digest(db, *usage_report.week("2023-W01", START), START)
    assert (before.total.total, before.held, before.wastes) == (0, None, [])


def waste(db: Database, *rows: tuple[int, str, UsageKind, float], day: int = START // DAY_US) -> None:
    """Stores GPU-hours that came to nothing: a job's number, its user, the kind, and how many."""
    with db.write() as tx:
        known = set(tx.scalars(select(Job.number)))
        for number in sorted({row[0] for row in rows} - known):
            job = box.insert_job(tx)
            tx.execute(update(Job).where(Job.id == job).values(number=number))
        values = [
            {"day": day, "kind": kind, "number": number, "user_id": f"user-{user}", "gpu_us": round(spent * HOUR)}
            for number, user, kind, spent in rows
        ]
        tx.execute(insert(WastedUsage), values)


def test_wastes_are_named_by_whose_they_are_the_biggest_first_with_the_mend(db: Database, gpus: list[str]) -> None:
    box.add_user(db, "grace")
    waste(db, *((number, "ada", UsageKind.IDLE, number - 100) for number in range(101, 108)))
    waste(db, (107, "ada", UsageKind.IDLE, 13), (109, "grace", UsageKind.FAILED, 50), day=START // DAY_US - 1)
    waste(db, (109, "grace", UsageKind.LOST, 0.05), (101, "ada", UsageKind.LOST, 0.2))
    waste(db, (101, "ada", UsageKind.IDLE, 1000), day=START // DAY_US - 7)
    span = usage_report.DateRange(since=usage_report.today(START - DAY_US), until=usage_report.today(START))
    found = usage_report.digest(db, "", span, START).wastes
    assert [(waste.user, waste.kind, waste.gpu_hours, waste.count) for waste in found] == [
        ("grace", "failed", 50, 1),
        ("ada", "idle", 41, 7),
        ("ada", "lost", 0.2, 1),
    ]
    assert found[0].message == (
        "1 job of grace failed after 50.0 GPU-hours (109): set checkpoint.every and max_retries, and try new code "
        "with a short time_limit"
    )
    idle = "7 jobs of ada held GPUs idle 41.0 GPU-hours (107, 106, 105, 104, 103, …): set idle_limit"
    assert found[1].message.startswith(idle)


def test_what_runs_counts_to_a_waste_once(db: Database, gpus: list[str]) -> None:
    waste(db, *((number, "ada", UsageKind.LOST, 1) for number in range(101, 107)))
    job, attempt = add_run(db, gpus[:1], hours=4)
    end(db, attempt, kind=ResultKind.LOST)
    number = box.job_row(db, job).number
    again(db, job, gpus[:1], hours=1)
    with db.read() as tx:
        (so_far,) = usage.running(tx, START)
        of_job = (WastedUsage.number == number, WastedUsage.kind == UsageKind.LOST)
        ended = tx.scalars(select(WastedUsage.gpu_us).where(*of_job)).all()
    running = so_far.split[START // DAY_US, UsageKind.LOST]
    assert running
    assert ended
    span = usage_report.DateRange(since=usage_report.today(START), until=usage_report.today(START))
    (lost,) = (each for each in usage_report.digest(db, "", span, START).wastes if each.kind == "lost")
    total = (running + sum(ended)) / HOUR
    assert (lost.gpu_hours, lost.count) == (6 + total, 7)
    assert lost.jobs == [number, 101, 102, 103, 104]
