"""What no node of the installation could run is refused before it is queued."""

import pytest
from sqlalchemy import update

from service.db.engine import Database
from service.db.models import Device
from service.jobs import fit
from service.problems import ProblemError
from tests.support import box
from torchyard.spec import JobSpec


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
    assert "NCCL needs GPUs, and no node has any. Take backend: auto" in refusal(db, "nccl")
    assert "no node has a torch that was built with MPI. Take backend: auto" in refusal(db, "mpi")
    with db.read() as tx:
        assert {fit.check(tx, recipe(backend)) for backend in ("auto", "gloo")} == {"submitted"}


def test_a_backend_that_one_node_has_is_taken(db: Database) -> None:
    box.add_node(db, "gpus", capabilities=None)
    box.add_node(db, "mpi")
    with db.write() as tx:
        tx.execute(update(Device).where(Device.node == "mpi").values(kind="cpu"))
    with db.read() as tx:
        assert {fit.check(tx, recipe(backend)) for backend in ("nccl", "mpi")} == {"submitted"}


def test_before_the_first_node_everything_is_taken(db: Database) -> None:
    with db.read() as tx:
        assert "no node has registered yet" in fit.check(tx, recipe("mpi"))
