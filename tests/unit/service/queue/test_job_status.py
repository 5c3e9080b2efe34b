"""There are words for whatever can have happened to a job."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from service.queue import job_status
from service.scheduler.model.jobs import EstimateSource
from service.scheduler.model.nodes import ClosedReason, LinkType
from tests.support.sharing import HOUR, MINUTE, NOW, node, runs, state
from torchyard import api
from torchyard.states import JobState, StopReason


def test_every_reason_has_its_words() -> None:
    assert job_status._STOPPED.keys() == set(StopReason)
    assert job_status._LINKS.keys() == set(LinkType)
    assert job_status._SOURCES.keys() == set(EstimateSource)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"state": JobState.SUCCEEDED}, "succeeded"),
        (
            {"state": JobState.FAILED, "error": api.JobError(cause="nan", message="the loss is NaN")},
            "failed: the loss is NaN",
        ),
        ({"state": JobState.FAILED, "error": None}, "failed: no reason is known"),
        ({"state": JobState.CANCELLED, "stop": StopReason.CANCEL, "stop_actor": "ada"}, "was cancelled by ada"),
        (
            {"state": JobState.CANCELLED, "stop": StopReason.EARLY},
            "was stopped early: other trials of its sweep do better",
        ),
        ({"state": JobState.STOPPING, "stop": StopReason.DRAIN}, "is stopping because its node is draining"),
        ({"state": JobState.STOPPING, "stop": None}, "is stopping because its part on one of its nodes has failed"),
    ],
)
def test_how_it_ended(row: dict[str, Any], words: str) -> None:
    job: Any = SimpleNamespace(**{"stop_actor": None, "stop": None, "error": None, **row})
    no_database: Any = None
    assert job_status._state(no_database, job)[1] == words


def test_where_it_runs() -> None:
    numbered = node("a")
    known = replace(numbered, slots=tuple(replace(slot, numa=slot.index // 2) for slot in numbered.slots))
    (reason,) = job_status._place(runs(1, "a0", "a1", "b2", "b3"), state(nodes=(known, node("b"))))
    near = "on one NUMA node: the nearest that were free"
    assert reason.message == f"has GPUs 0, 1 of node a, {near}; GPUs 2, 3 of node b"
    (apart,) = job_status._place(runs(1, "a0", "a2"), state(nodes=(known,)))
    assert "on several NUMA nodes" in apart.message
    (alone,) = job_status._place(runs(1, "a0", gpu_share=2**30), state())
    assert alone.message == "has GPU 0 of node a, shared with others"


def test_when_it_ends() -> None:
    assert job_status.expected_end(runs(1, "a0", minutes=60), state(), NOW) == (NOW + HOUR, NOW + 2 * HOUR)
    limited = runs(1, "a0", minutes=60, ends_us=NOW + 90 * MINUTE)
    assert job_status.expected_end(limited, state(), NOW) == (NOW + HOUR, NOW + 90 * MINUTE)
    assert job_status.expected_end(runs(1, "a0", minutes=None), state(), NOW) is None
    ending = runs(1, "a0", minutes=None, ends_us=NOW + HOUR)
    assert job_status.expected_end(ending, state(), NOW) == (NOW + HOUR, NOW + HOUR)


def test_nobody_knows_when_it_ends_on_a_node_that_is_not_heard() -> None:
    silent = state(nodes=(node("a", closed=ClosedReason.UNREACHABLE), node("b")))
    assert job_status.expected_end(runs(1, "a0", minutes=60), silent, NOW) is None
    assert job_status.expected_end(runs(1, "a0", "b1", minutes=60, ends_us=NOW + HOUR), silent, NOW) is None
    assert job_status.expected_end(runs(1, "b0", minutes=60), silent, NOW) == (NOW + HOUR, NOW + 2 * HOUR)


def test_one_that_is_cancelled_gives_way_to_nobody() -> None:
    job: Any = SimpleNamespace(id="job-1", attempt=1, stop=StopReason.CANCEL)
    no_database: Any = None
    assert job_status._preempted_for(no_database, job) == []
