"""Jobs that name secrets: whose they are, what is refused at the submission, what waits, and what a node gets."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from service import lifecycle
from service.controllers.scheduling import Scheduler
from service.db.leader import Leader
from service.db.models import Attempt, Project, ProjectMember, User
from service.errors import ProblemError
from service.identity.callers import Caller
from service.infra.observability import Counters
from service.infra.times import moment
from service.jobs import submit as job_submission
from service.nodes import reports
from service.secrets import of_jobs, store
from tests.support import submissions
from tests.support.box import NOW
from tests.support.recorded_context import RecordedContext
from tests.support.submissions import ADA
from torchyard import api, wire
from torchyard.ids import AttemptId, JobId

EVE = replace(ADA, user_id="user-eve", name="eve", admin=False, scopes=frozenset({"submit"}))
OWN, SHARED = "of-eve-herself", "of-the-project"


@pytest.fixture
def people(yard: RecordedContext) -> RecordedContext:
    """Eve, who is a member of the project `vision`, and ada, who administers."""
    with yard.ctx.db.write() as tx:
        tx.execute(insert(User).values(id="user-eve", name="eve", created_us=NOW))
        tx.execute(update(User).where(User.name == "ada").values(role="administrator"))
        tx.execute(insert(Project).values(name="vision", created_us=NOW))
        tx.execute(insert(ProjectMember).values(project="vision", user_id="user-eve", added_us=NOW))
    return yard


@pytest.fixture
def scheduler(people: RecordedContext) -> Iterator[Scheduler]:
    leader = Leader(people.ctx.db)
    yield Scheduler(people.ctx, leader, Counters())
    leader.resign()


def keep(made: RecordedContext, caller: Caller, name: str, value: str, project: str | None = None) -> None:
    sent = api.SecretValue.model_validate({"value": value})
    store.set_secret(made.ctx.db, made.ctx.secret_keys, caller, name, sent, made.ctx.now_us(), project)


def submit(made: RecordedContext, *secrets: str, caller: Caller = EVE, **fields: Any) -> api.Job:
    order = replace(submissions.order(secrets=secrets, **{"project": "vision", **fields}), caller=caller)
    job = job_submission.submit(made.ctx.db, made.ctx.store, made.ctx.now_us, order).made
    assert isinstance(job, api.Job)
    return job


def assigned(made: RecordedContext, scheduler: Scheduler, job: api.Job) -> AttemptId:
    assert scheduler.run_pass() == 1
    with made.ctx.db.read() as tx:
        return tx.execute(select(Attempt.id).where(Attempt.job_id == job.id)).scalar_one()


def delivered(made: RecordedContext, attempt: AttemptId, nonce: str = "nonce") -> dict[str, str]:
    claim = wire.Claim(nonce=nonce)
    return reports.secrets(made.ctx.db, made.ctx.secret_keys, made.ctx.now_us(), "box", attempt, claim).values


def uses(made: RecordedContext, caller: Caller) -> dict[tuple[str, str | None], list[int]]:
    """The numbers of the jobs that were given a secret, by its name and project."""
    shown = store.list_secrets(made.ctx.db, caller)
    assert all((each.used_at is not None) == bool(each.used_by) for each in shown)
    return {(each.name, each.project): each.used_by for each in shown}


def test_the_owner_s_own_come_before_those_of_the_project(people: RecordedContext, scheduler: Scheduler) -> None:
    keep(people, EVE, "API_KEY", OWN)
    keep(people, ADA, "API_KEY", SHARED, "vision")
    keep(people, ADA, "DATA_TOKEN", SHARED, "vision")
    keep(people, ADA, "API_KEY", "of-ada-herself")
    attempt = assigned(people, scheduler, submit(people, "API_KEY", "DATA_TOKEN"))
    assert reports.launch(people.ctx.db, "box", attempt).spec.secrets == ("API_KEY", "DATA_TOKEN")
    with pytest.raises(ProblemError, match="for its start alone"):
        delivered(people, attempt)
    unused = {("API_KEY", None): [], ("API_KEY", "vision"): [], ("DATA_TOKEN", "vision"): []}
    assert uses(people, EVE) == unused
    reports.claim(people.ctx.db, NOW, "box", attempt, wire.Claim(nonce="nonce"))
    assert delivered(people, attempt) == {"API_KEY": OWN, "DATA_TOKEN": SHARED}
    keep(people, EVE, "API_KEY", "changed since")
    assert delivered(people, attempt)["API_KEY"] == "changed since"
    assert uses(people, EVE) == {**unused, ("API_KEY", None): [1], ("DATA_TOKEN", "vision"): [1]}
    with pytest.raises(ProblemError, match="for its start alone"):
        delivered(people, attempt, "another nonce")
    with people.ctx.db.write() as tx:
        lifecycle.mark_running(tx, attempt, NOW)
    with pytest.raises(ProblemError, match="is running: secrets are for its start alone"):
        delivered(people, attempt)


def test_a_name_that_is_unknown_is_refused_with_those_that_there_are(people: RecordedContext) -> None:
    keep(people, EVE, "API_KEY", OWN)
    keep(people, ADA, "DATA_TOKEN", SHARED, "vision")
    keep(people, ADA, "ADAS_TOKEN", SHARED)
    with pytest.raises(ProblemError) as refused:
        submit(people, "API_KEY", "API_KEI")
    assert refused.value.errors[0].field == "secrets"
    assert refused.value.detail == (
        "secrets: there is no secret API_KEI of the job's owner or of project vision: `yard secrets set API_KEI` adds "
        "it; there are API_KEY, DATA_TOKEN"
    )
    with pytest.raises(ProblemError, match=r"are no secrets ONE, TWO .*`yard secrets set TWO` add them"):
        submit(people, "ONE", "TWO")
    job_submission.check(people.ctx.db, people.ctx.store, replace(submissions.order(secrets=["ADAS_TOKEN"])))
    with pytest.raises(ProblemError, match="no secret DATA_TOKEN"):
        job_submission.check(people.ctx.db, people.ctx.store, submissions.order(secrets=["DATA_TOKEN"]))


def test_who_is_no_member_does_not_get_the_project_s(people: RecordedContext) -> None:
    keep(people, ADA, "DATA_TOKEN", SHARED, "default")
    with pytest.raises(ProblemError, match="no secret DATA_TOKEN"):
        submit(people, "DATA_TOKEN", project="default")
    assert submit(people, "DATA_TOKEN", project="default", caller=ADA).number == 1


@pytest.mark.parametrize("lost", ["secret", "membership"])
def test_a_job_waits_for_a_secret_that_is_gone(people: RecordedContext, scheduler: Scheduler, lost: str) -> None:
    keep(people, ADA, "DATA_TOKEN", SHARED, "vision")
    job = submit(people, "DATA_TOKEN")
    with people.ctx.db.write() as tx:
        if lost == "membership":
            tx.execute(delete(ProjectMember))
    if lost == "secret":
        store.remove_secret(people.ctx.db, ADA, "DATA_TOKEN", NOW, "vision")
    assert scheduler.run_pass() == 0
    reason = submissions.why(people.ctx, job.id).reasons[0]
    assert reason.code == "secret"
    assert reason.message.startswith("there is no secret DATA_TOKEN of the job's owner or of project vision: `yard sec")
    people.forget()
    keep(people, EVE, "DATA_TOKEN", OWN)
    assert people.woken.is_set()
    assert scheduler.run_pass() == 1


def test_a_secret_that_goes_between_decision_and_start_stops_it(people: RecordedContext, scheduler: Scheduler) -> None:
    keep(people, EVE, "API_KEY", OWN)
    job = submit(people, "API_KEY")
    attempt = assigned(people, scheduler, job)
    store.remove_secret(people.ctx.db, EVE, "API_KEY", NOW)
    with pytest.raises(ProblemError, match="Must not start: there is no secret API_KEY") as refused:
        reports.claim(people.ctx.db, NOW, "box", attempt, wire.Claim(nonce="nonce"))
    assert refused.value.kind == "not-acceptable-state"
    keep(people, EVE, "API_KEY", OWN)
    reports.claim(people.ctx.db, NOW, "box", attempt, wire.Claim(nonce="nonce"))
    store.remove_secret(people.ctx.db, EVE, "API_KEY", NOW)
    with pytest.raises(ProblemError, match="there is no secret API_KEY") as refused:
        delivered(people, attempt)
    assert refused.value.kind == "conflict"


def test_whoever_is_deactivated_gets_none_any_more(people: RecordedContext, scheduler: Scheduler) -> None:
    keep(people, ADA, "DATA_TOKEN", SHARED, "vision")
    attempt = assigned(people, scheduler, submit(people, "DATA_TOKEN"))
    reports.claim(people.ctx.db, NOW, "box", attempt, wire.Claim(nonce="nonce"))
    with people.ctx.db.write() as tx:
        tx.execute(update(User).where(User.name == "eve").values(deactivated_us=NOW))
    with pytest.raises(ProblemError, match="eve is deactivated") as refused:
        delivered(people, attempt)
    assert refused.value.kind == "conflict"


def test_the_newest_jobs_of_a_secret_are_told_until_it_is_removed(people: RecordedContext) -> None:
    keep(people, EVE, "API_KEY", OWN)
    jobs = [submit(people, "API_KEY") for _ in range(store.MAX_USES + 2)]
    named = of_jobs.NamedSecrets(user_id=EVE.user_id, project="vision", names=("API_KEY",))
    with people.ctx.db.write() as tx:
        for at, job in enumerate([*jobs, jobs[2]]):
            of_jobs.give(tx, people.ctx.secret_keys, named, JobId(job.id), NOW + at)
    (shown,) = store.list_secrets(people.ctx.db, EVE)
    assert shown.used_by == [3, *range(len(jobs), 4, -1), 4][: store.MAX_USES]
    assert shown.used_at == moment(NOW + len(jobs))
    store.remove_secret(people.ctx.db, EVE, "API_KEY", NOW)
    keep(people, EVE, "API_KEY", OWN)
    assert uses(people, EVE) == {("API_KEY", None): []}
