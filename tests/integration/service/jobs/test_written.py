"""Jobs as JSON: written once for each version, and never an older one."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, update

from service.db.models import Job
from service.identity.callers import Caller
from service.jobs import find, present, queries
from service.jobs.written import WrittenJobs
from tests.support import box
from tests.support.recorded_context import RecordedContext
from torchyard import api
from torchyard.ids import JobId

ADA = Caller(user_id="user-ada", name="ada", admin=True, scopes=frozenset(), node=None, token_id="tok-ada")


def _listed(yard: RecordedContext, written: WrittenJobs) -> list[dict[str, Any]]:
    found = queries.page(yard.ctx.db, written, ADA, find.Filters(), find.Span(limit=10))
    assert found.body is not None
    items: list[dict[str, Any]] = json.loads(found.body)["items"]
    return items


def test_only_jobs_that_have_changed_are_presented_again(
    yard: RecordedContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, written = yard.ctx.db, WrittenJobs()
    presented: list[int] = []
    jobs = [box.add_job(db) for _ in range(3)]
    plain = present.jobs

    def counted(tx: Connection, ids: Sequence[JobId], who: Caller | None) -> list[api.Job]:
        presented.append(len(ids))
        return plain(tx, ids, who)

    monkeypatch.setattr(present, "jobs", counted)
    before = _listed(yard, written)
    with db.write() as tx:
        tx.execute(update(Job).where(Job.id == jobs[1]).values(name="renamed", version=Job.version + 1))
    after = _listed(yard, written)
    assert presented == [3, 1]
    assert [each["name"] for each in after] == ["renamed" if each["id"] == jobs[1] else each["name"] for each in before]
    assert after == [json.loads(job.model_dump_json()) for job in _plain(yard, plain, [each["id"] for each in before])]


def _plain(yard: RecordedContext, load: Any, ids: list[str]) -> list[Any]:
    with yard.ctx.db.read() as tx:
        return list(load(tx, ids, ADA))
