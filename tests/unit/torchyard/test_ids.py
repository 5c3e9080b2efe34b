"""Ids of things."""

import time

import pytest

from torchyard.ids import new_id, parse_job_id


def test_a_jobs_id_is_told_from_others() -> None:
    job_id = new_id("job")
    assert parse_job_id(job_id) == job_id
    assert parse_job_id(new_id("res")) is None


def test_ids_of_one_millisecond_sort_in_the_order_in_which_they_were_made() -> None:
    made = [new_id("audit") for _ in range(2000)]
    assert made == sorted(set(made))


def test_ids_keep_their_order_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_id("audit")
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000_000_000_000)
    assert before < new_id("audit") < new_id("audit")
