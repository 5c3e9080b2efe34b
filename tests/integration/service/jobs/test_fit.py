"""What no node of the installation could run is refused before it is queued."""

import pytest
from sqlalchemy import insert, update

from service.db.engine import Database
from service.db.models import Device, User
from service.errors import ProblemError
from service.identity import users
from service.jobs import fit
from tests.support import box
from tests.support.submissions import ADA
from torchyard.spec import JobSpec, Launcher, Network, Resources
from torchyard.wire import Capability


def recipe(backend: str) -> JobSpec:
    return JobSpec.model_validate({"recipe": {"backend": backend}, "resources": {"gpus": 1}})


def refusal(db: Database, backend: str) -> str:
    with pytest.raises(ProblemError) as caught, db.read() as tx:
        fit.check(tx, recipe(backend))
    assert (caught.value.kind, [error.field for error in caught.value.errors]) == ("never-fits", ["recipe.backend"])
    return str(caught.value.detail)


def test_a_backend_that_the_box_has_not_is_refused_with_the_mend(db: Database) -> None:
    box.add_node(db, capabilities=["gpu-share"])
    with db.write() as tx:
        tx.execute(update(Device).values(kind="cpu"))
    assert "node box has no GPUs, and NCCL needs them. Take backend: auto" in refusal(db, "nccl")
    assert "no node has a torch that was built with MPI. Take backend: auto" in refusal(db, "mpi")
    with db.read() as tx:
        assert [fit.check(tx, recipe(backend)) for backend in ("auto", "gloo")] == [[], []]


def test_a_backend_that_one_node_has_is_taken(db: Database) -> None:
    box.add_node(db, "gpus", capabilities=None)
    box.add_node(db, "mpi")
    with db.write() as tx:
        tx.execute(update(Device).where(Device.node == "mpi").values(kind="cpu"))
    with db.read() as tx:
        assert [fit.check(tx, recipe(backend)) for backend in ("nccl", "mpi")] == [[], []]


def test_a_backend_counts_the_gpus_of_one_node_alone(db: Database) -> None:
    box.add_node(db, "gpus", devices=1)
    box.add_node(db, "slots", devices=4)
    with db.write() as tx:
        tx.execute(update(Device).where(Device.node == "slots").values(kind="cpu"))
    wide = recipe("nccl").model_copy(update={"resources": Resources(gpus=4)})
    with db.read() as tx:
        with pytest.raises(ProblemError) as caught:
            fit.check(tx, wide)
        assert fit.check(tx, wide.model_copy(update={"recipe": None})) == []
    told = "node gpus has 1 GPUs, the job needs 4; node slots has no GPUs, and NCCL needs them"
    assert told in str(caught.value.detail)
    (error,) = caught.value.errors
    assert error.code == "sentences"
    first = error.model_dump()["params"]["first"]
    assert (first["code"], first["params"]["node"], first["params"]["lack"]["code"]) == (
        "lacking-node",
        "gpus",
        "few-gpus",
    )


def test_a_network_of_its_own_is_refused_where_no_node_can_give_one(db: Database) -> None:
    box.add_node(db, capabilities=["gpu-share"])
    spec = JobSpec(command=("a",), launcher=Launcher.NONE, network=Network.ISOLATED)
    with db.read() as tx, pytest.raises(ProblemError) as caught:
        fit.check(tx, spec)
    assert [error.field for error in caught.value.errors] == ["network"]
    assert "node box cannot give a job a network of its own" in str(caught.value.detail)
    assert str(caught.value.detail).endswith("Leave network out, or add a node.")
    box.add_node(db, "root", capabilities=[Capability.NETWORK_ISOLATION])
    with db.read() as tx:
        assert fit.check(tx, spec) == []


def test_before_the_first_node_everything_is_taken(db: Database) -> None:
    with db.read() as tx:
        (note,) = fit.check(tx, recipe("mpi"))
        assert "no node has registered yet" in note.message


def user(db: Database, name: str, unix_user: str | None) -> str:
    with db.write() as tx:
        tx.execute(insert(User).values(id=name, name=name, unix_user=unix_user, created_us=1))
    return name


def test_a_user_whom_no_node_would_run_is_refused_with_the_mend(db: Database) -> None:
    ada, bob = user(db, "ada", None), user(db, "bob", "bob")
    box.add_node(db, "strict", capabilities=[Capability.UNIX_ACCOUNTS])
    spec = JobSpec(command=("a",), launcher=Launcher.NONE)
    with db.read() as tx:
        assert fit.check(tx, spec, bob) == []
        with pytest.raises(ProblemError) as caught:
            fit.check(tx, spec, ada)
        assert "`yard users set ada --unix-user ACCOUNT`" in str(caught.value.detail)
    told = {each.name: each.warning for each in users.list_users(db, ADA)}
    assert told["bob"] is None
    assert "ada has no UNIX account, so node strict will run none of their jobs" in str(told["ada"])
    box.add_node(db, "older", capabilities=None)
    with db.read() as tx:
        assert fit.check(tx, spec, ada) == []
        with pytest.raises(ProblemError):
            fit.check(tx, spec.model_copy(update={"resources": Resources(nodes=2)}), ada)


def test_a_job_over_two_nodes_that_fits_one_is_advised(db: Database) -> None:
    for name in ("a", "b"):
        box.add_node(db, name, devices=4)
    spread = JobSpec.model_validate({"command": ["true"], "resources": {"gpus": 2, "nodes": 2}})
    with db.read() as tx:
        (note,) = fit.check(tx, spread)
        assert "node a alone could hold all of it" in note.message
        wide = spread.model_copy(update={"resources": spread.resources.model_copy(update={"gpus": 3})})
        assert fit.check(tx, wide) == []
