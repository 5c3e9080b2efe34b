"""Lists, searches and counts of jobs: what is found page by page is what a look at each job finds."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select

from service.db.engine import Database
from service.db.models import Attempt, Job, MetricSeries, Project, Tag, User
from service.identity.callers import Caller
from service.jobs import find, metric_filter
from tests.support import box, databases
from tests.support.submissions import ADA
from torchyard.ids import new_id
from torchyard.states import JobState

JOBS = 120
MEMBER = Caller(
    user_id="user-1", name="u1", admin=False, scopes=frozenset(), node=None, token_id="-", projects=frozenset({"p1"})
)
LOSSES = [metric_filter.parse("loss<0.5"), metric_filter.parse("loss>0.2")]
BEST = [metric_filter.parse("min:loss<0.2"), metric_filter.parse("max:loss>0.9")]
STATES = (JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED)


def add_jobs(db: Database) -> None:
    """Jobs of three users in three projects, with up to two tags, and a metric's values for most."""
    box.add_people(db)
    like, chance = box.add_job(db), random.Random(5)
    with db.write() as tx:
        row = dict(tx.execute(Job.__table__.select().where(Job.id == like)).mappings().one())
        tx.execute(insert(User), [{"id": f"user-{n}", "name": f"u{n}", "created_us": 1} for n in range(3)])
        tx.execute(insert(Project), [{"name": f"p{n}", "created_us": 1} for n in range(3)])
        for number in range(row["number"] + 1, row["number"] + 1 + JOBS):
            tags = sorted({chance.choice("ab") for _ in range(chance.randrange(3))})
            own = {"user_id": f"user-{chance.randrange(3)}", "project": f"p{chance.randrange(3)}", "tags": tags}
            name = chance.choice(("bert", "unet", "bert-unet"))
            job = {**row, **own, "id": new_id("job"), "number": number, "name": name, "state": chance.choice(STATES)}
            tx.execute(insert(Job), [job])
            for tag in tags:
                tx.execute(insert(Tag), [{"tag": tag, "job_id": job["id"], "number": number}])
            if chance.random() < 0.8:
                attempt = {"id": new_id("att"), "job_id": job["id"], "number": 1, "state": "exited", "created_us": 1}
                tx.execute(insert(Attempt), [attempt])
                of = {"job_id": job["id"], "number": number, "attempt_id": attempt["id"], "attempt": 1}
                last, apart = chance.random(), chance.random()
                ends = {"min_value": last * apart, "max_value": 1 - (1 - last) * apart}
                values = {"name": "loss", "last_value": last, **ends}
                tx.execute(
                    insert(MetricSeries), [{**of, **values, "stream": f"{rank}", "rank": rank} for rank in (0, 1)]
                )


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def many(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A database with jobs, for all examples."""
    with databases.filled(request, tmp_path_factory, add_jobs) as db:
        yield db


def passing(db: Database, caller: Caller, filters: find.Filters) -> list[tuple[int, JobState]]:
    """Numbers and states of the jobs that pass, by a look at each of them."""
    with db.read() as tx:
        jobs = tx.execute(select(Job.number, Job.name, Job.state, Job.project, Job.tags, User.name).join(User)).all()
        columns = (MetricSeries.number, MetricSeries.min_value, MetricSeries.last_value, MetricSeries.max_value)
        losses = {row.number: row for row in tx.execute(select(*columns).where(MetricSeries.rank == 0))}

    def has(number: int, wanted: metric_filter.MetricFilter) -> bool:
        if number not in losses:
            return False
        value: float = getattr(losses[number], f"{wanted.which}_value")
        return value < wanted.value if wanted.operator == "<" else value > wanted.value

    def passes(number: int, name: str, state: str, project: str, tags: list[str], user: str) -> bool:
        return all(
            (
                caller.admin or user == caller.name or project in caller.projects,
                not filters.state or JobState(state) in filters.state,
                filters.user in (None, user),
                filters.project in (None, project),
                not filters.tag or set(filters.tag) & {*tags, *([] if tags else [""])},
                filters.q is None or filters.q in name,
                all(has(number, wanted) for wanted in filters.metric),
                filters.before is None or number < filters.before,
                filters.after is None or number > filters.after,
            )
        )

    return sorted(((job[0], JobState(job[2])) for job in jobs if passes(*job)), reverse=True)


FILTERS = st.builds(
    find.Filters,
    state=st.lists(st.sampled_from(STATES), max_size=2, unique=True),
    user=st.sampled_from([None, "u0", "u1"]),
    project=st.sampled_from([None, "p0", "p1"]),
    tag=st.lists(st.sampled_from(["a", "b", ""]), max_size=2, unique=True),
    q=st.sampled_from([None, "bert", "unet", "t-u", "e"]),
    metric=st.sampled_from(
        [[], [metric_filter.parse("loss<0.5")], [metric_filter.parse("loss<0.02")], LOSSES, BEST, BEST[1:]]
    ),
    before=st.sampled_from([None, 60]),
    after=st.sampled_from([None, 30]),
)


@settings(max_examples=50, deadline=None)
@given(
    filters=FILTERS,
    caller=st.sampled_from([ADA, MEMBER]),
    order=st.sampled_from(["newest", "oldest"]),
    limits=st.sampled_from([(5, 20, 10), (40, 20, 10), (1, 200, 200)]),
)
def test_page_by_page_all_jobs_are_found(
    many: Database, filters: find.Filters, caller: Caller, order: find.Order, limits: tuple[int, int, int]
) -> None:
    expected = passing(many, caller, filters)
    with pytest.MonkeyPatch.context() as patch, many.read() as tx:
        for name, value in zip(("FEW", "LOOKED", "LOOKED_ONE_BY_ONE"), limits, strict=True):
            patch.setattr(find, name, value)
        found, cursor, pages = [], None, 0
        while pages == 0 or cursor is not None:
            span = find.Span(limit=7, cursor=cursor, order=order)
            rows, cursor = find.page(tx, caller, filters, span)
            found += [row.number for row in rows]
            pages += 1
            assert pages <= JOBS
        counted = find.counts(tx, caller, filters, most=12)
    numbers = [number for number, _ in expected]
    assert found == (numbers if order == "newest" else numbers[::-1])
    by_state = Counter(state for _, state in expected)
    assert all(count <= min(by_state[state], 12) for state, count in counted.states.items())
    exact = {state: count for state, count in by_state.items() if state not in counted.more}
    assert {state: count for state, count in counted.states.items() if state not in counted.more} == exact


def test_some_jobs_can_be_passed_over(many: Database) -> None:
    expected = [number for number, _ in passing(many, MEMBER, find.Filters())]
    with many.read() as tx:
        rows, following = find.page(tx, MEMBER, find.Filters(), find.Span(limit=5, offset=9))
    assert [row.number for row in rows] == expected[9:14]
    assert following == str(expected[13])
