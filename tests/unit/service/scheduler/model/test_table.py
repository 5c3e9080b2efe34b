"""Rows of jobs, which come and go."""

from service.scheduler.model.table import Column, Table
from torchyard.ids import JobId


def test_a_copy_has_no_room_to_spare_and_takes_more_jobs_nevertheless() -> None:
    table = Table()
    for number in range(100):
        table.add(JobId(f"job-{number}"), number, (float(number),) * len(Column))
    copy = table.copy()
    assert copy._values.nbytes == copy.columns.nbytes < table._values.nbytes
    assert copy._class_ids.nbytes == copy.class_id.nbytes < table._class_ids.nbytes
    copy.add(JobId("job-100"), 100, (100.0,) * len(Column))
    assert (copy.columns[0] == range(101)).all()
    assert (copy.class_id == range(101)).all()
    assert len(table) == 100


def test_a_copy_of_an_empty_table_takes_jobs() -> None:
    copy = Table().copy()
    copy.add(JobId("job-1"), 1, (1.0,) * len(Column))
    assert copy.jobs == ["job-1"]
    assert copy.columns.shape == (len(Column), 1)
