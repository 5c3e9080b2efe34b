"""`python -m benchmarks.history`: how long lists of jobs take beside a long history, on SQLite or PostgreSQL.

A database with many ended jobs, and a queue, is made by bulk insert. Each list is asked for often with other values,
through the functions that the routes call; the table has the median and the 99th percentile, and beside each the
same list on a database with a hundredth of the jobs: what stays flat is near 1.
"""

import argparse
import contextlib
import dataclasses
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sqlalchemy import func, insert, select, text

from benchmarks import results
from benchmarks.figure import Figure, summarise
from service.accounting import storage, usage_report
from service.accounting.gpu_time import DAY_US
from service.db import schema
from service.db.engine import Database
from service.db.models import (
    Attempt,
    Checkpoint,
    Job,
    Member,
    MetricSeries,
    Node,
    OwnerUsage,
    Project,
    Tag,
    Usage,
    User,
    WastedUsage,
)
from service.db.unit_of_work import unit_of
from service.estimation.forecasts import Estimator
from service.identity.callers import Caller
from service.jobs import find, metric_filter, ordering, queries
from service.jobs.written import WrittenJobs
from service.queue import overview, waiting_jobs
from service.scheduler_cache.load import Loader
from tests.support import postgres
from torchyard.ids import JobId
from torchyard.spec import JobSpec
from torchyard.states import JOB_FINAL, JobState

USERS, PROJECTS, TAGS, CHUNK = 20, 30, 500, 20_000
#: Bytes of the checkpoint that each job has left.
CHECKPOINT = 100_000_000
#: For so long each list is asked for, and three times in any case.
LONGEST_S = 5
START = 1_700_000_000_000_000
#: A million jobs in a year, and each ran for a minute.
APART_US, RAN_US = 30_000_000, 60_000_000
STATES = ("succeeded",) * 80 + ("failed",) * 14 + ("cancelled",) * 6
WORDS = ("resnet", "bert", "vit", "unet", "sweep", "ablation", "baseline", "finetune", "debug", "final")


def fill(db: Database, ended: int, queued: int) -> None:
    """Add users, projects, and jobs with one attempt each."""
    chance, usage = random.Random(1), Counter[tuple[int, str, str]]()
    spec = JobSpec.model_validate({"command": ["python", "train.py"], "resources": {"gpus": 1}}).model_dump(mode="json")
    with db.write() as tx:
        tx.execute(
            insert(Node).values(
                name="old", node_id="m", home_id="h", boot_id="b", pid_namespace="p", hostname="old", version="0",
                runs_as_root=False, cpus=8, memory=2**36, disk_free=2**40, last_seen_us=START, registered_us=START,
                capabilities=[],
            )
        )  # fmt: skip
        tx.execute(insert(User), [{"id": f"user-{n}", "name": f"u{n}", "created_us": START} for n in range(USERS)])
        tx.execute(insert(Project), [{"name": f"p{n}", "created_us": START} for n in range(PROJECTS)])
    for first in range(0, ended + queued, CHUNK):
        numbers = range(first + 1, min(first + CHUNK, ended + queued) + 1)
        jobs = [_job(number, "queued" if number > ended else chance.choice(STATES), spec, chance) for number in numbers]
        over = [job for job in jobs if job["state"] != "queued"]
        tags = [{"job_id": job["id"], "tag": tag, "number": job["number"]} for job in jobs for tag in job["tags"]]
        with db.write() as tx:
            tx.execute(insert(Job), jobs)
            tx.execute(insert(Tag), tags)
            if over:
                usage.update((job["ended_us"] // DAY_US, job["user_id"], job["project"]) for job in over)
                members = [{"attempt_id": f"att-{job['number']}", "node_rank": 0, "node": "old"} for job in over]
                tx.execute(insert(Attempt), [_attempt(job) for job in over])
                tx.execute(insert(Member), members)
                tx.execute(insert(MetricSeries), [_series(job, chance) for job in over])
                tx.execute(insert(Checkpoint), [_checkpoint(job) for job in over])
                tx.execute(insert(WastedUsage), [_wasted(job) for job in over])
                for job in over:
                    unit_of(tx).count_stored(job["id"], CHECKPOINT)
    each = {"useful": RAN_US, "idle": RAN_US // 10}
    rows = [
        {"day": day, "user_id": user, "project": project, "kind": kind, "gpu_us": jobs * gpu_us}
        for (day, user, project), jobs in usage.items()
        for kind, gpu_us in each.items()
    ]
    owned = Counter[tuple[str, int, str, str]]()
    for row in rows:
        owned["user", row["day"], row["user_id"], row["kind"]] += row["gpu_us"]
        owned["project", row["day"], row["project"], row["kind"]] += row["gpu_us"]
    names = ("owner_kind", "day", "owner", "kind")
    sums = [dict(zip(names, key, strict=True)) | {"gpu_us": us, "stoppable_us": 0} for key, us in owned.items()]
    with db.write() as tx:
        tx.execute(insert(Usage), rows)
        tx.execute(insert(OwnerUsage), sums)
        if not db.is_sqlite:  # which does so by itself, as SQLite does not
            tx.execute(text("ANALYZE"))


def _job(number: int, state: str, spec: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    at = START + number * APART_US
    return {
        "id": f"job-{number:09d}",
        "number": number,
        "name": f"{chance.choice(WORDS)}-{chance.choice(WORDS)}-{chance.randrange(10_000)}",
        "user_id": f"user-{int(USERS * chance.random() ** 2)}",
        "project": f"p{int(PROJECTS * chance.random() ** 2)}",
        "state": state,
        "priority": 1,
        "spec": spec,
        "tags": sorted({f"t{int(TAGS * chance.random() ** 3)}" for _ in range(2)}),
        "attempt": 0 if state == "queued" else 1,
        "created_us": at,
        "queued_us": at,
        "started_us": None if state == "queued" else at,
        "ended_us": None if state == "queued" else at + RAN_US // 2 + chance.randrange(RAN_US),
        "changed_us": at,
    }


def _attempt(job: dict[str, Any]) -> dict[str, Any]:
    at = job["created_us"]
    times = {"created_us": at, "claimed_us": at, "started_us": at, "ended_us": job["ended_us"]}
    used = {"gpu_time": {str((at + RAN_US) // DAY_US): {"useful": RAN_US, "idle": RAN_US // 10}}}
    return {"id": f"att-{job['number']}", "job_id": job["id"], "number": 1, "state": job["state"], **times, **used}


def _wasted(job: dict[str, Any]) -> dict[str, Any]:
    of_job = {"number": job["number"], "user_id": job["user_id"]}
    return {"day": job["ended_us"] // DAY_US, "kind": "idle", **of_job, "gpu_us": RAN_US // 10}


def _checkpoint(job: dict[str, Any]) -> dict[str, Any]:
    of_job = {"id": f"ckpt-{job['number']}", "job_id": job["id"], "attempt_id": f"att-{job['number']}"}
    return {**of_job, "name": "last", "step": 9, "state": "stored", "metrics": {}} | {
        "size": CHECKPOINT,
        "created_us": job["ended_us"],
    }


def _series(job: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    of_job = {"job_id": job["id"], "attempt_id": f"att-{job['number']}", "attempt": 1, "number": job["number"]}
    last = chance.random()
    return {
        **of_job,
        "stream": "0.jsonl",
        "rank": 0,
        "name": "val/accuracy",
        "min_value": last * chance.random(),
        "last_value": last,
        "max_value": 1 - (1 - last) * chance.random(),
        "last_step": 9,
    }


_METRICS = {
    "metric, half of all": "val/accuracy>0.5",
    "metric, rare": "val/accuracy>0.9999",
    "metric, none": "val/accuracy>1",
    "largest value, most of all": "max:val/accuracy>0.5",
    "largest value, rare": "max:val/accuracy<0.01",
    "metric that no job has": "val/loss<1",
}


def questions(db: Database) -> Iterator[tuple[str, Callable[[random.Random], object]]]:
    """Yield the lists by name."""
    admin, member = _caller("user-0", admin=True), _caller("user-7", admin=False)
    newcomer = dataclasses.replace(_caller("user-new", admin=False), projects=frozenset({"private"}))

    def page(caller: Caller, **filters: Any) -> object:
        part = {name: filters.pop(name) for name in ("cursor", "offset", "order") if name in filters}
        span = find.Span(limit=50, **part)
        return queries.page(db, WrittenJobs(), caller, find.Filters(**filters), span)

    def metric(text: str) -> object:
        return page(admin, metric=[metric_filter.parse(text)])

    yield "newest", lambda _: page(admin)
    yield "newest, of a member", lambda _: page(member)
    yield "a page in the middle", lambda chance: page(admin, cursor=str(chance.randrange(400, 1900)))
    for state in (JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED, JobState.CANCELLED):
        yield f"state {state}", lambda _, state=state: page(admin, state=[state])
    yield "user", lambda chance: page(admin, user=f"u{chance.randrange(USERS)}")
    yield "user and state", lambda chance: page(admin, user=f"u{chance.randrange(USERS)}", state=[JobState.FAILED])
    yield (
        "user and no such state",
        lambda chance: page(admin, user=f"u{chance.randrange(USERS)}", state=[JobState.RUNNING]),
    )
    yield "project", lambda chance: page(admin, project=f"p{chance.randrange(PROJECTS)}")
    yield (
        "project and state",
        lambda chance: page(admin, project=f"p{chance.randrange(PROJECTS)}", state=[JobState.FAILED]),
    )
    yield "tag, common", lambda _: page(admin, tag=["t0"])
    yield "tag and user", lambda chance: page(admin, tag=["t0"], user=f"u{chance.randrange(USERS)}")
    yield "tag and state", lambda _: page(admin, tag=["t0"], state=[JobState.RUNNING])
    yield "no tag", lambda _: page(admin, tag=[""])
    yield (
        "user and project",
        lambda chance: page(admin, user=f"u{chance.randrange(USERS)}", project=f"p{chance.randrange(PROJECTS)}"),
    )
    yield "newest, of a newcomer", lambda _: page(newcomer)
    yield "tag, rare", lambda chance: page(admin, tag=[f"t{TAGS - 1 - chance.randrange(20)}"])
    yield "text, common", lambda _: page(admin, q="resnet")
    yield "text, rare", lambda chance: page(admin, q=f"bert-{chance.choice(WORDS)}-{chance.randrange(10_000)}")
    yield "text, none", lambda _: page(admin, q="nothing like it")
    for name, wanted in _METRICS.items():
        yield name, lambda _, wanted=wanted: metric(wanted)
    yield "text, of common parts", lambda chance: page(admin, q=f"bert-bert-{chance.randrange(10_000)}")
    yield "text, of common parts, none", lambda _: page(admin, q="bert-bert-bert")
    yield "text, of two characters", lambda chance: page(admin, q=f"{chance.randrange(10, 100)}")
    yield "anywhere by offset", lambda chance: page(admin, offset=chance.randrange(find.MAX_OFFSET))
    yield "as far as offsets go", lambda _: page(admin, offset=find.MAX_OFFSET)
    yield "the same, of the ended", lambda _: page(admin, offset=find.MAX_OFFSET, state=list(JOB_FINAL))
    yield "before any number", lambda chance: page(admin, before=chance.randrange(_last(db)))
    yield "the oldest", lambda _: page(admin, order="oldest")

    def counts(**filters: Any) -> object:
        return queries.counts(db, admin, find.Filters(**filters), find.MOST)

    yield "counts", lambda _: counts()
    yield "counts of a user", lambda chance: counts(user=f"u{chance.randrange(USERS)}")
    yield "counts of a project", lambda chance: counts(project=f"p{chance.randrange(PROJECTS)}")
    for words in ("resnet", "resnet-bert", "bert-bert-bert-77"):
        yield f"counts of the text {words}", lambda _, words=words: counts(q=words)
    yield "counts of a rare metric", lambda _: counts(metric=[metric_filter.parse("val/accuracy>0.9999")])
    yield "jobs by user", lambda _: queries.facets(db, admin, find.Filters(), "user")
    yield "jobs by tag", lambda _: queries.facets(db, admin, find.Filters(), "tag")
    yield "jobs by tag, with a text", lambda _: queries.facets(db, admin, find.Filters(q="resnet-bert"), "tag")
    yield from _in_orders(db, admin)
    yield from _of_the_queue(db, admin)
    yield from _of_usage(db)


def _in_orders(db: Database, admin: Caller) -> Iterator[tuple[str, Callable[[random.Random], object]]]:
    """Yield lists in the order of a column, and of a metric's largest value."""
    order, span = ordering.parse("-max:val/accuracy"), find.Span(limit=50)
    for column in map(ordering.parse, ("user", "-user", "priority", "name", "-duration")):
        words = f"in the order {'-' * column.falling}{column.column}"
        yield (
            words,
            lambda _, column=column: queries.ordered_page(db, admin, find.Filters(), span, column, START, None),
        )
    for name, filters in {
        "by largest value": find.Filters(),
        "by largest value, of the failed": find.Filters(state=[JobState.FAILED]),
        "by largest value, of those that wait": find.Filters(state=[JobState.QUEUED]),
        "by largest value, of a tag": find.Filters(tag=["t0"]),
    }.items():
        yield name, lambda _, filters=filters: queries.ordered_page(db, admin, filters, span, order, START, None)


def _of_the_queue(db: Database, admin: Caller) -> Iterator[tuple[str, Callable[[random.Random], object]]]:
    """Yield what is asked about the jobs that wait, with a scheduler's state that is kept from one call to the next."""
    estimator = Estimator()
    loader, now = Loader(0, estimator), START + 2 * 365 * DAY_US
    with db.read() as tx:
        waiting = list(tx.scalars(select(Job.id).where(Job.state == JobState.QUEUED).order_by(Job.number)))

    def places(offset: int = 0, **filters: Any) -> object:
        span = find.Span(limit=50, offset=offset)
        return waiting_jobs.page(db, loader, now, admin, find.Filters(**filters), span, None)

    def why(job: JobId) -> object:
        return overview.why(db, loader, estimator, now, job, admin)

    yield "queue, its first jobs", lambda _: places()
    yield "queue, anywhere", lambda chance: places(chance.randrange(max(1, len(waiting) - 50)))
    yield "queue, of a user", lambda chance: places(user=f"u{chance.randrange(USERS)}")
    yield "queue, of a rare tag", lambda chance: places(tag=[f"t{TAGS - 1 - chance.randrange(20)}"])
    yield "why the first waits", lambda _: why(waiting[0])
    yield "why another waits", lambda chance: why(chance.choice(waiting))


def _of_usage(db: Database) -> Iterator[tuple[str, Callable[[random.Random], object]]]:
    """Yield reports of the days that the jobs ended in."""
    with db.read() as tx:
        now = tx.scalar(select(func.max(Job.ended_us))) or 0
    last = usage_report.today(now)

    def usage(days: int, by: Any) -> object:
        span = usage_report.DateRange(since=last - timedelta(days=days - 1), until=last)
        return usage_report.report(db, span, by, now)

    def held(kind: Any, name: str | None = None) -> object:
        with db.read() as tx:
            return storage.held(tx, kind, name)

    yield "storage of a user", lambda chance: held("user", f"user-{chance.randrange(USERS)}")
    yield "storage of all projects", lambda _: held("project")
    yield "usage of four weeks by user", lambda _: usage(28, "user")
    yield "usage of four weeks by day", lambda _: usage(28, "day")
    yield "usage of a year by project", lambda _: usage(365, "project")
    yield "digest of a week", lambda _: usage_report.digest(db, *usage_report.week(None, now), now)


def _last(db: Database) -> int:
    """Return the number of the newest job."""
    with db.read() as tx:
        return tx.scalar(select(func.max(Job.number))) or 0


def _caller(user: str, *, admin: bool) -> Caller:
    projects = frozenset() if admin else frozenset({"p3", "p20"})
    scopes = frozenset({"read"})
    return Caller(user_id=user, name=user, admin=admin, scopes=scopes, node=None, token_id="-", projects=projects)


def timed(ask: Callable[[random.Random], object], options: argparse.Namespace) -> list[float]:
    """Return the milliseconds that each of several calls took, in order; fewer calls where they take long."""
    clock = time.thread_time if options.cpu else time.perf_counter
    chance, took, until = random.Random(2), list[float](), time.monotonic() + LONGEST_S
    ask(chance)
    while len(took) < options.times and (time.monotonic() < until or len(took) < 3):
        began = clock()
        ask(chance)
        took.append(1000 * (clock() - began))
    return sorted(took)


def measured(url: str, ended: int, queued: int, options: argparse.Namespace) -> dict[str, list[float]]:
    """Return the milliseconds of each list, by name."""
    began = time.monotonic()
    schema.migrate(url)
    db = Database(url)
    try:
        fill(db, ended, queued)
        print(f"{ended:,} ended and {queued:,} queued jobs made in {time.monotonic() - began:.0f} s", flush=True)
        return {name: timed(ask, options) for name, ask in questions(db) if name.startswith(tuple(options.only))}
    finally:
        db.dispose()


def p99(took: list[float]) -> float:
    """Return the 99th percentile of ordered values."""
    return took[min(len(took) - 1, round(0.99 * len(took)))]


def main() -> None:
    """Make two databases and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history")
    parser.add_argument("--ended", type=int, default=1_000_000)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--only", nargs="*", default=[""], help="lists whose names begin with these words")
    parser.add_argument("--record", action="store_true", help="write the slowest and the median list into results.json")
    parser.add_argument("--cpu", action="store_true", help="CPU time of the thread that asks, for a busy machine")
    options = parser.parse_args()
    console = Console(width=120)
    with tempfile.TemporaryDirectory(prefix="ty-bench-") as folder, _urls(Path(folder), options.postgresql) as urls:
        small = measured(urls[0], options.ended // 100, options.queued // 100, options)
        large = measured(urls[1], options.ended, options.queued, options)
    ms = "CPU ms" if options.cpu else "ms"
    table = Table("list", f"p50 {ms}", f"p99 {ms}", "p50 with a hundredth", "ratio")
    for name, took in large.items():
        beside = statistics.median(small[name])
        median = statistics.median(took)
        table.add_row(name, f"{median:.1f}", f"{p99(took):.1f}", f"{beside:.1f}", f"{median / beside:.1f} x")
    console.print(table)
    if options.record:
        results.report("history", list(summarise(figures(small, large, options.ended))))


def figures(small: dict[str, list[float]], large: dict[str, list[float]], ended: int) -> Iterator[Figure]:
    """Yield the slowest list and the median of all, beside a hundredth of the jobs."""
    took, beside = ({name: statistics.median(times) for name, times in each.items()} for each in (large, small))
    slowest = max(took, key=lambda name: took[name])
    name, against = f"lists beside {ended:,} ended jobs", "a hundredth"
    yield Figure(
        name=f"{name}: slowest, p50", value=took[slowest], unit="ms", target="< 25", met=took[slowest] < 25,
        baseline=beside[slowest], against=against,
    )  # fmt: skip
    middle, less = statistics.median(took.values()), statistics.median(beside.values())
    yield Figure(name=f"{name}: median of all", value=middle, unit="ms", baseline=less, against=against)


@contextlib.contextmanager
def _urls(folder: Path, postgresql: bool) -> Iterator[list[str]]:
    if not postgresql:
        yield [f"sqlite:///{folder / name}.db" for name in ("small", "large")]
        return
    with postgres.serve() as server, server.database() as small, server.database() as large:
        yield [small, large]


if __name__ == "__main__":
    main()
