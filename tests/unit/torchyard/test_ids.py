"""Ids of things."""

from torchyard.ids import new_id, parse_job_id


def test_a_jobs_id_is_told_from_others() -> None:
    job_id = new_id("job")
    assert parse_job_id(job_id) == job_id
    assert parse_job_id(new_id("res")) is None


def test_ids_of_one_millisecond_sort_in_the_order_in_which_they_were_made() -> None:
    made = [new_id("audit") for _ in range(2000)]
    assert made == sorted(set(made))
