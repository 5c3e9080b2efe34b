"""When a job that waits for others may start, and when it never will."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.lifecycle.dependencies import DependencyVerdict, Needed, verdict

STATES = st.lists(st.sampled_from(["open", "succeeded", "failed", "early"]), min_size=1, max_size=5)


def needed(states: Any) -> Needed:
    return Needed(
        open="open" in states, succeeded="succeeded" in states, failed="failed" in states, early="early" in states
    )


@pytest.mark.parametrize(
    ("need", "when", "states", "expected"),
    [
        ("all", "success", ["succeeded", "open"], DependencyVerdict.WAITS),
        ("all", "success", ["succeeded", "succeeded"], DependencyVerdict.MAY_START),
        ("all", "success", ["failed", "open"], DependencyVerdict.NEVER),
        ("all", "end", ["failed", "open"], DependencyVerdict.WAITS),
        ("all", "end", ["failed", "succeeded"], DependencyVerdict.MAY_START),
        ("any", "success", ["failed", "open"], DependencyVerdict.WAITS),
        ("any", "success", ["failed", "failed"], DependencyVerdict.NEVER),
        ("any", "success", ["succeeded", "open"], DependencyVerdict.MAY_START),
        ("any", "end", ["failed", "open"], DependencyVerdict.MAY_START),
        ("any", "end", ["open", "open"], DependencyVerdict.WAITS),
        ("all", "success", ["succeeded", "early"], DependencyVerdict.MAY_START),
        ("all", "success", ["early", "open"], DependencyVerdict.WAITS),
        ("any", "success", ["early", "open"], DependencyVerdict.WAITS),
        ("any", "success", ["early", "early"], DependencyVerdict.NEVER),
        ("any", "end", ["early", "open"], DependencyVerdict.MAY_START),
    ],
)
def test_verdicts(need: str, when: str, states: list[str], expected: DependencyVerdict) -> None:
    assert verdict(need, when, needed(states)) is expected


@given(STATES)
def test_once_all_have_ended_nobody_waits_on(states: list[str]) -> None:
    over = ["failed" if state == "open" else state for state in states]
    for need, when in itertools.product(("all", "any"), ("success", "end")):
        assert verdict(need, when, needed(over)) is not DependencyVerdict.WAITS


@given(STATES, st.sampled_from(["succeeded", "failed"]))
def test_a_verdict_stands_whatever_ends_next(states: list[str], end: str) -> None:
    for need, when in itertools.product(("all", "any"), ("success", "end")):
        before = verdict(need, when, needed(states))
        later = [end if state == "open" else state for state in states]
        if before is not DependencyVerdict.WAITS:
            assert verdict(need, when, needed(later)) is before
