"""Models of what attempts store as JSON."""

from service.db.records.attempts import PendingPreemption


def test_a_pending_preemption_is_stored_by_the_words_of_the_table() -> None:
    pending = PendingPreemption(preemptor="job-9", words="job 9 (ana), urgent", asked_us=0, deadline_us=1, serial=1)
    stored = pending.model_dump(by_alias=True)
    assert stored["for"] == "job-9"
    assert PendingPreemption.model_validate(stored) == pending
