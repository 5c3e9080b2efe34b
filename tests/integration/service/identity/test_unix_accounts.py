"""Users whom a node runs no jobs of: what it says is heeded when they submit, place, and ask why."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from service.controllers.scheduling import Scheduler
from service.db.engine import Database
from service.db.leader import Leader
from service.db.models import Device, Member, Node, User
from service.errors import ProblemError
from service.identity import unix_accounts, users
from service.infra.observability import Counters
from service.jobs import fit
from service.nodes import heartbeats, launches
from service.queue import overview
from tests.support import box, submissions
from tests.support.recorded_context import RecordedContext
from torchyard import wire
from torchyard.spec import JobSpec, Launcher, Resources
from torchyard.wire import Capability

SPEC = JobSpec(command=("a",), launcher=Launcher.NONE)


def say(db: Database, node: str, accounts: dict[str, bool] | None) -> heartbeats.HeartbeatReply:
    """A heartbeat of the node, as its worker sends it."""
    with db.write() as tx:
        row = tx.execute(select(Node.__table__).where(Node.name == node)).one()
        names = ("node_id", "home_id", "boot_id", "pid_namespace")
        identity = wire.Identity(**{name: row._mapping[name] for name in names})
        devices = [
            wire.Device(uuid=uuid, index=n, kind=wire.DeviceKind.GPU, name="A100", memory=80 * box.GIB)
            for n, uuid in enumerate(tx.scalars(select(Device.uuid).where(Device.node == node).order_by(Device.index)))
        ]
        beat = wire.Heartbeat(
            identity=identity, devices=devices, attempts=[], disk_free=100 * box.GIB, accounts=accounts
        )
        return heartbeats.record(tx, node, beat, box.NOW)


def account(db: Database, name: str | None) -> None:
    with db.write() as tx:
        tx.execute(update(User).where(User.id == "user-ada").values(unix_user=name))


def refusal(db: Database, spec: JobSpec = SPEC) -> str | None:
    try:
        with db.read() as tx:
            fit.check(tx, spec, "user-ada")
    except ProblemError as error:
        return f"{error.kind}, {error.errors[0].field}: {error.detail}"
    return None


def test_what_no_node_would_run_is_refused_with_the_mend(db: Database) -> None:
    box.add_people(db)
    account(db, "ghost")
    box.add_node(db, "root", runs_as_root=True)
    assert say(db, "root", None).orders.accounts == ["ghost"]
    assert refusal(db) is None, "an older worker says nothing"
    assert say(db, "root", {}).wake
    assert refusal(db) is None, "it has not looked yet"
    assert say(db, "root", {"ghost": False}).wake
    assert not say(db, "root", {"ghost": False}).wake
    told = "the UNIX account ghost of ada does not exist on node root, or may not enter the attempts there: an"
    assert str(refusal(db)).startswith(f"never-fits, user: user: {told}")
    with db.read() as tx:
        ada = users.by_name(tx, "ada")
    assert "names another with `yard users set ada --unix-user ACCOUNT`" in str(ada.warning)
    assert ada.warning_sentence is not None
    assert (ada.warning_sentence.message, ada.warning_sentence.code) == (ada.warning, "account-absent")
    account(db, "root")
    say(db, "root", {"root": False})
    assert "jobs of ada would run as root on node root, which its worker refuses: an administrator names" in str(
        refusal(db)
    )
    account(db, "ghost")
    say(db, "root", {"ghost": False})
    box.add_node(db, "own", capabilities=[Capability.UNIX_ACCOUNTS])
    say(db, "own", {"ghost": False})
    assert "the worker on node own may not become ghost, the UNIX account of ada" in str(refusal(db))
    box.add_node(db, "trusting")
    say(db, "trusting", {"ghost": True})
    assert refusal(db) is None
    assert refusal(db, SPEC.model_copy(update={"resources": Resources(nodes=2)})) is not None
    account(db, None)
    assert refusal(db) is None, "only one of them needs an account"
    with db.read() as tx:
        assert unix_accounts.excluded_nodes(tx) == {"user-ada": frozenset({"own"})}


@pytest.fixture
def scheduler(made: RecordedContext) -> Iterator[Scheduler]:
    leader = Leader(made.ctx.db)
    yield Scheduler(made.ctx, leader, Counters())
    leader.resign()


def where(made: RecordedContext) -> list[str]:
    with made.ctx.db.read() as tx:
        return list(tx.scalars(select(Member.node).order_by(Member.attempt_id)))


def told(made: RecordedContext, job: str) -> dict[str, Any]:
    found = submissions.why(made.ctx, job)
    return {"summary": found.summary, **{each.code: each.message for each in found.reasons}}


def test_jobs_keep_off_nodes_that_would_refuse_them_and_why_says_so(
    made: RecordedContext, scheduler: Scheduler
) -> None:
    """`made` has the node `box` with four GPUs, for everybody."""
    db = made.ctx.db
    box.add_node(db, "a-strict", devices=4, capabilities=[Capability.UNIX_ACCOUNTS], runs_as_root=True)
    with db.write() as tx:
        tx.execute(insert(User).values(id="bob", name="bob", unix_user="bob", created_us=box.NOW))
    account(db, None)
    say(db, "a-strict", {"bob": True})
    first, second = (submissions.job(made.ctx, resources={"gpus": 4}) for _ in range(2))
    assert scheduler.run_pass() == 1
    assert where(made) == ["box"]
    why = told(made, second.id)
    assert f"held by job {first.number} (ada)" in why["summary"]
    assert why["account"].startswith("ada has no UNIX account, so node a-strict will run none of their jobs: an admin")
    account(db, "ada")
    assert scheduler.run_pass() == 0
    assert told(made, second.id)["account"] == (
        "node a-strict has not told yet whether it can run jobs as ada, the UNIX account of ada"
    )
    say(db, "a-strict", {"ada": False, "bob": True})
    assert scheduler.run_pass() == 0
    assert "does not exist on node a-strict" in told(made, second.id)["account"]
    with made.ctx.db.write() as tx:
        tx.execute(update(Node).where(Node.name == "box").values(capabilities=[Capability.UNIX_ACCOUNTS]))
    say(db, "box", {"ada": False, "bob": True})
    assert list(told(made, second.id)) == ["summary", "account"], "nothing else is in the way any more"
    say(db, "a-strict", {"ada": True, "bob": True})
    assert scheduler.run_pass() == 1
    assert where(made) == ["box", "a-strict"]


def active(db: Database, yes: bool) -> None:
    with db.write() as tx:
        tx.execute(update(User).where(User.id == "user-ada").values(deactivated_us=None if yes else box.NOW))


def listed(made: RecordedContext) -> list[str]:
    """Return what the queue says of each job."""
    page = overview.page(made.ctx.db, made.ctx.loader, made.ctx.now_us(), submissions.ADA, 0, 10)
    return [entry.reason for entry in page.items]


def test_jobs_of_a_deactivated_user_wait_until_an_administrator_decides(
    made: RecordedContext, scheduler: Scheduler
) -> None:
    job, alike = (submissions.job(made.ctx) for _ in range(2))
    active(made.ctx.db, False)
    assert scheduler.run_pass() == 0
    why = (
        "ada is deactivated, so no node starts their jobs: an administrator cancels them, or ends that with "
        "`yard users set ada --active`"
    )
    assert (told(made, job.id)["account"], told(made, alike.id)["account"]) == (why, why)
    assert listed(made) == [why, why]
    active(made.ctx.db, True)
    assert scheduler.run_pass() == 2
    assert where(made) == ["box", "box"]


def test_what_was_assigned_before_its_user_was_deactivated_is_not_handed_out(
    made: RecordedContext, scheduler: Scheduler
) -> None:
    submissions.job(made.ctx)
    assert scheduler.run_pass() == 1
    active(made.ctx.db, False)
    with made.ctx.db.read() as tx:
        attempt = tx.scalars(select(Member.attempt_id)).one()
    with pytest.raises(ProblemError, match="ada is deactivated") as refused, made.ctx.db.read() as tx:
        launches.launch(tx, attempt, "box")
    assert refused.value.kind == "not-acceptable-state"
    active(made.ctx.db, True)
    with made.ctx.db.read() as tx:
        assert launches.launch(tx, attempt, "box").user == "ada"
