"""A text finds the jobs that reading every name would find, through the trigrams of the names."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, func, insert, or_, select, update

from service.db.engine import Database
from service.db.models import Job
from service.jobs import find, text_search
from tests.support import box, databases
from tests.support.submissions import ADA
from torchyard.ids import new_id
from torchyard.states import JobState

JOBS = 200
WORDS = ("resnet", "ResNet", "bert", "a", "ab", "aaaa", "unet.v2", "x_1", "0")


def add_jobs(db: Database, count: int = JOBS, first: int = 1) -> None:
    """Jobs with names that share their parts."""
    box.add_people(db)
    like = box.add_job(db)
    chance = random.Random(first)
    names = ["".join(chance.choice(WORDS) + chance.choice("-_.") for _ in range(3)) for _ in range(count)]
    with db.write() as tx:
        row = dict(tx.execute(Job.__table__.select().where(Job.id == like)).mappings().one())
        numbers = range(row["number"] + 1, row["number"] + 1 + count)
        rows = [{**row, "id": new_id("job"), "number": n, "name": name} for n, name in zip(numbers, names, strict=True)]
        tx.execute(insert(Job), rows)


def read_one_by_one(tx: Connection, words: str) -> list[int]:
    """The numbers that a look at each job finds, the newest first."""
    same: list[Any] = [Job.name.icontains(words, autoescape=True)]
    if words.startswith("job-"):
        same.append(Job.id.startswith(words, autoescape=True))
    if words.isascii() and words.isdigit() and len(words) <= 18:
        same.append(Job.number == int(words))
    return list(tx.scalars(select(Job.number).where(or_(*same)).order_by(Job.number.desc())))


def found(tx: Connection, words: str, **filters: Any) -> list[int]:
    span = find.Span(limit=find.MAX_PAGE)
    return [row.number for row in find.page(tx, ADA, find.Filters(q=words, **filters), span)[0]]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def many(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A database with jobs, for all examples."""
    with databases.filled(request, tmp_path_factory, add_jobs) as db:
        yield db


@pytest.fixture
def few_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text is so common that the trigrams are not asked."""
    monkeypatch.setattr(text_search, "MANY", JOBS + 2)


TEXTS = st.one_of(
    st.text("abeErRsStTnN-_.12x", min_size=1, max_size=9),
    st.text("ab\"'%_\\/*()^: äßİK-", min_size=1, max_size=6),
    st.builds("".join, st.lists(st.sampled_from([*WORDS, "-", "_"]), min_size=1, max_size=7)),
    st.integers(0, JOBS + 9).map(str),
)


@settings(max_examples=150)
@given(words=TEXTS.filter(lambda words: words.strip() == words))
@pytest.mark.usefixtures("few_suffice")
def test_trigrams_find_what_a_look_at_each_job_finds(many: Database, words: str) -> None:
    with many.read() as tx:
        assert (text_search.candidates(tx, words) is None) == (len(words) < text_search.LEAST)
        assert found(tx, words) == read_one_by_one(tx, words)


def test_a_text_that_many_names_have_is_found_in_the_order_of_the_list(many: Database) -> None:
    with many.read() as tx:
        assert text_search.candidates(tx, "resnet") is None
        assert found(tx, "resnet") == read_one_by_one(tx, "resnet") != []
        last = found(tx, "resnet")[-1]
        span = find.Span(limit=1, order="oldest")
        assert [row.number for row in find.page(tx, ADA, find.Filters(q="resnet"), span)[0]] == [last]


@pytest.mark.usefixtures("few_suffice")
def test_the_beginning_of_an_id_finds_its_job(many: Database) -> None:
    with many.read() as tx:
        job = tx.execute(select(Job.id, Job.number).where(Job.number == JOBS // 2)).one()
        for words in (job.id, job.id[:-3]):
            assert found(tx, words) == read_one_by_one(tx, words) == [job.number]
        assert found(tx, job.id[:8]) == read_one_by_one(tx, job.id[:8])
        assert found(tx, "job-%") == []


@pytest.mark.usefixtures("few_suffice")
def test_other_filters_and_counts_hold_beside_a_text(many: Database) -> None:
    with many.read() as tx:
        expected = read_one_by_one(tx, "bert-ab")
        assert 0 < len(expected) < JOBS
        assert found(tx, "bert-ab", state=[JobState.QUEUED, JobState.RUNNING]) == expected
        assert found(tx, "bert-ab", state=[JobState.RUNNING, JobState.FAILED]) == []
        assert found(tx, "bert-ab", tag=["", "t"]) == expected
        assert found(tx, "bert-ab", tag=["t"]) == []
        assert find.counts(tx, ADA, find.Filters(q="bert-ab")) == find.Counts(
            states={JobState.QUEUED: len(expected)}, more=[]
        )


@pytest.mark.usefixtures("few_suffice")
def test_too_many_for_the_trigrams_are_read_in_the_order_of_the_list(
    many: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_search, "MOST", 3)
    with many.read() as tx:
        for words in ("resnet", "a", "job-"):
            assert text_search.candidates(tx, words) is None
            assert found(tx, words) == read_one_by_one(tx, words) != []


@pytest.mark.usefixtures("few_suffice")
def test_a_short_text_is_looked_for_page_by_page(many: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "LOOKED", 50)
    with many.read() as tx:
        left_out = tx.scalars(select(func.max(Job.number))).one() - 50
        assert text_search.candidates(tx, "ab") is None
        assert found(tx, "ab") == [number for number in read_one_by_one(tx, "ab") if number > left_out]
        _, following = find.page(tx, ADA, find.Filters(q="ab"), find.Span(limit=find.MAX_PAGE))
        assert following == str(left_out + 1)


@pytest.mark.usefixtures("few_suffice")
def test_a_job_is_found_by_its_newest_name(db: Database) -> None:
    add_jobs(db, 3)
    with db.write() as tx:
        tx.execute(update(Job).where(Job.number == 2).values(name="Evaluation"))
    with db.write() as tx:
        assert found(tx, "evaluation") == [2]
        tx.execute(update(Job).where(Job.number == 2).values(name="evaluating"))
        assert (found(tx, "evaluation"), found(tx, "luatin")) == ([], [2])
        gone = tx.scalar(select(Job.name).where(Job.number == 3)) or ""
        tx.execute(delete(Job).where(Job.number == 3))
        assert found(tx, gone) == []


@pytest.mark.parametrize(("alike", "few"), [(3, True), (8, False)])
def test_names_that_have_the_parts_elsewhere_are_read_up_to_a_bound(
    db: Database, monkeypatch: pytest.MonkeyPatch, alike: int, few: bool
) -> None:
    monkeypatch.setattr(text_search, "MOST", 5)
    box.add_people(db)
    with db.write() as tx:
        for name in [*["cabd_abc_bca"] * alike, "the-abcabd"]:
            box.insert_job(tx, name=name)
    with db.read() as tx:
        assert (text_search.candidates(tx, "abcabd") is not None) == few
        assert found(tx, "abcabd") == read_one_by_one(tx, "abcabd") == [alike + 1]
