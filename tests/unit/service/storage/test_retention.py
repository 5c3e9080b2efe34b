import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from service.storage.retention import RetentionCandidate, best, prunable
from torchyard.spec import CheckpointPolicy, KeepBest

ACCURACY = KeepBest(metric="acc", mode="max")


def kept(step: int, *, attempt: int = 1, state: str = "stored", **metrics: Any) -> RetentionCandidate:
    return RetentionCandidate(
        id=f"{attempt}-{step}",
        name=f"step-{step}",
        state=state,
        attempt_id=f"att-{attempt}",
        attempt=attempt,
        step=step,
        metrics=metrics,
    )


def ids(checkpoints: list[RetentionCandidate]) -> list[str]:
    return [checkpoint.id for checkpoint in checkpoints]


def test_the_newest_are_kept() -> None:
    policy = CheckpointPolicy(keep_last=2)
    assert ids(prunable([kept(step) for step in (10, 20, 30, 40)], policy, ())) == ["1-10", "1-20"]


def test_newest_means_the_latest_attempt_first() -> None:
    policy = CheckpointPolicy(keep_last=1)
    assert ids(prunable([kept(100), kept(50, attempt=2)], policy, ())) == ["1-100"]


def test_the_best_and_the_pinned_are_kept_beside_them() -> None:
    policy = CheckpointPolicy(keep_last=1, keep_best=ACCURACY)
    checkpoints = [kept(10, acc=0.9), kept(20, acc=0.2), kept(30, acc=0.3), kept(40, acc=0.4)]
    assert ids(prunable(checkpoints, policy, {"1-20"})) == ["1-30"]


def test_only_stored_ones_count_and_go() -> None:
    policy = CheckpointPolicy(keep_last=1)
    checkpoints = [kept(10), kept(20, state="committed"), kept(30, state="committed")]
    assert prunable(checkpoints, policy, ()) == []


def test_the_best_has_a_finite_value() -> None:
    checkpoints = [
        kept(1, acc=0.5),
        kept(2, acc="inf"),
        kept(3),
        kept(4, acc=math.nan),
        kept(5, acc=0.5),
        kept(6, acc=0.1),
    ]
    assert best(checkpoints, ACCURACY) == "1-5", "the newest of equals"
    assert best(checkpoints, KeepBest(metric="acc", mode="min")) == "1-6"
    assert best(checkpoints, KeepBest(metric="loss")) is None
    assert best(checkpoints, None) is None


CHECKPOINTS = st.lists(
    st.builds(
        kept,
        st.integers(0, 50),
        attempt=st.integers(1, 3),
        state=st.sampled_from(["stored", "committed"]),
        acc=st.floats(0, 1) | st.just("nan"),
    ),
    max_size=12,
    unique_by=lambda checkpoint: checkpoint.id,
)


@given(CHECKPOINTS, st.integers(1, 4), st.sampled_from([None, ACCURACY]))
def test_a_verified_one_is_always_left(
    checkpoints: list[RetentionCandidate], keep_last: int, keep_best: KeepBest | None
) -> None:
    stored = [checkpoint for checkpoint in checkpoints if checkpoint.state == "stored"]
    gone = prunable(checkpoints, CheckpointPolicy(keep_last=keep_last, keep_best=keep_best), ())
    left = len(stored) - len(gone)
    assert left >= min(len(stored), keep_last)
    assert left <= keep_last + (keep_best is not None)
    assert best(stored, keep_best) not in ids(gone)
