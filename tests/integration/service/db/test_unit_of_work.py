"""What a unit of work has recorded follows its commit, and nothing follows a rollback."""

import pytest
from sqlalchemy import func, insert, select

from service.db.engine import Database
from service.db.models import Project
from service.db.unit_of_work import UnitOfWork, unit_of


def projects(db: Database) -> int:
    with db.read() as tx:
        return tx.scalar(select(func.count()).select_from(Project)) or 0


def test_effects_follow_the_commit(db: Database) -> None:
    before = projects(db)
    seen: list[tuple[UnitOfWork, int]] = []
    db.on_commit(lambda unit: seen.append((unit, projects(db))))
    with db.unit_of_work(7) as unit:
        unit.tx.execute(insert(Project).values(name="vision", created_us=unit.now))
        unit_of(unit.tx).tell_job("job-1")
        unit_of(unit.tx).tell_job("job-1")
        unit.nudge("box", "far", "box")
        unit.launch("box", "att-1")
        assert seen == []
    ((committed, found),) = seen
    assert found == before + 1  # whoever is told reads what was written
    assert committed is unit
    assert list(unit.topics) == ["job:job-1", "jobs"]
    assert list(unit.nudges) == ["box", "far"]
    assert list(unit.launches) == [("box", "att-1")]
    assert not unit.scheduler


def test_nothing_follows_a_rollback(db: Database) -> None:
    before = projects(db)
    seen: list[UnitOfWork] = []
    db.on_commit(seen.append)

    def record_and_fail() -> None:
        with db.write() as tx:
            tx.execute(insert(Project).values(name="vision", created_us=7))
            unit_of(tx).wake_scheduler()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        record_and_fail()
    assert seen == []
    assert projects(db) == before
    with db.write() as tx:
        assert not unit_of(tx).scheduler
    assert len(seen) == 1


def test_a_reader_has_no_unit_of_work(db: Database) -> None:
    with db.read() as tx, pytest.raises(KeyError):
        unit_of(tx)
