from torchyard import states
from torchyard.states import AttemptState, JobState


def test_every_state_is_in_its_table() -> None:
    assert set(states.JOB_TRANSITIONS) == set(JobState)
    assert set(states.ATTEMPT_TRANSITIONS) == set(AttemptState)


def test_every_state_is_reachable_from_the_first() -> None:
    for table, first in (
        (states.JOB_TRANSITIONS, JobState.QUEUED),
        (states.ATTEMPT_TRANSITIONS, AttemptState.ASSIGNED),
    ):
        seen, front = {first}, [first]
        while front:
            for state in table[front.pop()] - seen:
                seen.add(state)
                front.append(state)
        assert seen == set(table)


def test_no_state_lasts_for_ever_but_the_final_ones() -> None:
    assert frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}) == states.JOB_FINAL
    assert all(state in states.ATTEMPT_TRANSITIONS for state in states.ATTEMPT_FINAL)
