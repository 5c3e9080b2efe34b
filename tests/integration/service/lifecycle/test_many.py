"""One change of many jobs, on both databases."""

from service.db.engine import Database
from service.lifecycle import many
from service.lifecycle.notes import Note
from tests.support import box


def test_a_clock_that_is_set_back_hides_no_change(db: Database) -> None:
    box.add_people(db)
    jobs = [box.add_job(db) for _ in range(2)]
    latest = max(box.job_row(db, job).changed_us for job in jobs) + 10
    for now in (latest, latest - 5):
        with db.write() as tx:
            changed = many.change_waiting(tx, jobs, Note(kind="held", message="held by ada"), now, held=True)
            assert sorted(changed) == jobs
    assert [box.job_row(db, job).changed_us for job in jobs] == [latest] * 2
