"""When a job that waits for others may start, and when it never will."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.lifecycle.dependencies import Needed, Verdict, verdict

STATES = st.lists(st.sampled_from(["open", "succeeded", "failed", "early"]), min_size=1, max_size=5)


def needed(states: Any) -> Needed:
    return Needed(
        open="open" in states, succeeded="succeeded" in states, failed="failed" in states, early="early" in states
    )


@pytest.mark.parametrize(
    ("need", "when", "states", "expected"),
    [
        ("all", "success", ["succeeded", "open"], Verdict.WAITS),
        ("all", "success", ["succeeded", "succeeded"], Verdict.MAY_START),
        ("all", "success", ["failed", "open"], Verdict.NEVER),
        ("all", "end", ["failed", "open"], Verdict.WAITS),
        ("all", "end", ["failed", "succeeded"], Verdict.MAY_START),
        ("any", "success", ["failed", "open"], Verdict.WAITS),
        ("any", "success", ["failed", "failed"], Verdict.NEVER),
        ("any", "success", ["succeeded", "open"], Verdict.MAY_START),
        ("any", "end", ["failed", "open"], Verdict.MAY_START),
        ("any", "end", ["open", "open"], Verdict.WAITS),
        ("all", "success", ["succeeded", "early"], Verdict.MAY_START),
        ("all", "success", ["early", "open"], Verdict.WAITS),
        ("any", "success", ["early", "open"], Verdict.WAITS),
        ("any", "success", ["early", "early"], Verdict.NEVER),
        ("any", "end", ["early", "open"], Verdict.MAY_START),
    ],
)
def test_verdicts(need: str, when: str, states: list[str], expected: Verdict) -> None:
    assert verdict(need, when, needed(states)) is expected


@given(STATES)
def test_once_all_have_ended_nobody_waits_on(states: list[str]) -> None:
    over = ["failed" if state == "open" else state for state in states]
    for need, when in itertools.product(("all", "any"), ("success", "end")):
        assert verdict(need, when, needed(over)) is not Verdict.WAITS


@given(STATES, st.sampled_from(["succeeded", "failed"]))
def test_a_verdict_stands_whatever_ends_next(states: list[str], end: str) -> None:
    for need, when in itertools.product(("all", "any"), ("success", "end")):
        before = verdict(need, when, needed(states))
        later = [end if state == "open" else state for state in states]
        if before is not Verdict.WAITS:
            assert verdict(need, when, needed(later)) is before
