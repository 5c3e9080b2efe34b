"""What earlier jobs of the same kind held of a GPU is told to whoever asks for far more."""

from typing import Any

from service.db.engine import Database
from service.jobs import memory_advice
from tests.support import box
from torchyard.spec import JobSpec

GIB = 2**30


def ran(db: Database, uuids: list[str], held: int | None, **fields: Any) -> None:
    job_id = box.add_job(db, resources={"gpu_memory_min": "40GiB"}, **fields)
    box.finish(db, box.start(db, job_id, uuids[:1]), gpu_memory_peak=held)


def told(db: Database, asked: str = "40GiB", field: str = "gpu_memory_min", **fields: Any) -> str:
    given = {"command": ["true"], "launcher": "none", "resources": {"gpus": 1, field: asked}, **fields}
    with db.read() as tx:
        found = memory_advice.advice(tx, "user-ada", JobSpec.model_validate(given))
    return "" if found is None else found.message


def test_less_is_offered_with_what_to_type(db: Database) -> None:
    box.add_people(db)
    uuids = box.add_node(db)
    assert told(db) == ""
    ran(db, uuids, 9 * GIB)
    ran(db, uuids, None)
    assert "the last job like it held 9.0 GiB" in told(db)
    ran(db, uuids, 11 * GIB)
    assert told(db) == (
        "the last 2 jobs like it held 11.0 GiB of a GPU at most, and this one asks for 40.0 GiB: "
        "--set resources.gpu_memory_min=14GiB would do"
    )
    assert told(db, field="gpu_share").endswith("--set resources.gpu_share=14GiB would do")


def test_nothing_is_said_of_what_is_needed_or_of_another_kind(db: Database) -> None:
    box.add_people(db)
    uuids = box.add_node(db)
    ran(db, uuids, 11 * GIB)
    assert told(db, "20GiB") == ""
    assert told(db, command=["other.py"]) == ""
    with db.read() as tx:
        spec = JobSpec.model_validate({"command": ["true"], "launcher": "none", "resources": {"gpus": 1}})
        assert memory_advice.advice(tx, "user-ada", spec) is None
