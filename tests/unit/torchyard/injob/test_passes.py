"""However a script takes its batches, a resumed run is the run that was never stopped, or says that it is not."""

from pathlib import Path

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

from tests.support import loops
from tests.support.loops import Loop


def both(loop: Loop, step: int, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, str | None]:
    """Whether a run that is stopped after a step ends as one that is not, and what it says of it."""
    checkpoint = loops.stopped(loop, step, monkeypatch)
    if checkpoint is None:
        return True, None
    whole, resumed = loops.whole(loop), loops.resumed(loop, checkpoint)
    return torch.equal(whole.weights.value, resumed.weights.value), resumed.run.inexact


EXACT = {
    "plain": Loop(),
    "a look at the beginning of each epoch": Loop(looks=(1,)),
    "two looks": Loop(looks=(2, 1), order="generator"),
    "a look at every batch": Loop(looks=(7,), noisy=True),
    "a look in the middle": Loop(look_at=2),
    "a look in the middle, with a generator": Loop(look_at=2, order="generator"),
    "looks with loader processes": Loop(looks=(1,), look_at=3, noisy=True, workers=2, epochs=2),
    "accumulated": Loop(accumulated=3, last_report=True),
    "left over": Loop(accumulated=2, looks=(1,)),
    "draws before its loop": Loop(draws=True, looks=(1,)),
    "evaluation": Loop(evaluates=True, last_report=True),
    "broken off at its place": Loop(style="broken off at its place", epochs=4),
}


@pytest.mark.parametrize("name", EXACT)
def test_these_are_exact_and_say_nothing(name: str, off_the_queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = EXACT[name]
    # Where a loop ends is known once one has.
    first = 6 if loop.style != "plain" else 1
    for step in (first, first + 3, first + 7) if loop.workers == 0 else (9,):
        assert both(loop, step, monkeypatch) == (True, None), step


TOLD = {
    "zip of itself": "several passes through the loader feed one step",
    "zip of two": "a loader that is not attached",
    "nested": "several passes through the loader feed one step",
    "islice": "was left early",
    "broken off": "was left early",
    "each its own": "left",
    "cycle": "took no batch from the loader",
    "ahead": "ahead of the step",
    "far ahead": "ahead of the step",
    "thread": "in another thread",
    "twice": "several passes",
    "two loaders": "took no batch from the loader",
}


@pytest.mark.parametrize("style", TOLD)
def test_these_are_told_of(style: str, off_the_queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, inexact = both(Loop(style=style), 10, monkeypatch)
    assert TOLD[style] in (inexact or "")


def test_several_steps_for_one_batch_are_told_of(off_the_queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same, inexact = both(Loop(steps_each=2), 5, monkeypatch)
    assert (same, inexact) == (False, "steps are reported that took no batch from the loader")


def test_a_loop_of_its_own_over_the_epochs_is_told_of(off_the_queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, inexact = both(Loop(bounded=False), 3, monkeypatch)
    assert "not one over `run.epochs`" in (inexact or "")


def test_a_checkpoint_of_an_older_version_is_read(off_the_queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = loops.stopped(Loop(), 10, monkeypatch)
    assert checkpoint is not None
    own = torch.load(checkpoint / "rank-0.pt", weights_only=True)
    known = ("taken", "consumed", "drawn", "generators", "replicas", "batch_size")
    own["loader"] = {name: own["loader"][name] for name in known}
    torch.save(own, checkpoint / "rank-0.pt")
    resumed = loops.resumed(Loop(), checkpoint)
    assert torch.equal(resumed.weights.value, loops.whole(Loop()).weights.value)
    assert resumed.run.inexact is None


def test_it_is_said_when_it_is_found(off_the_queue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loops.whole(Loop(style="ahead"))
    said = capsys.readouterr().err
    assert said.count("after a stop this training cannot go on exactly: batches are taken ahead") == 1


SCRIPTS = st.builds(
    Loop,
    style=st.sampled_from(sorted(loops.STYLES)),
    batches=st.integers(9, 12),
    order=st.sampled_from(["given", "shuffled", "generator", "replaced"]),
    noisy=st.booleans(),
    looks=st.lists(st.integers(0, 9), max_size=2).map(tuple),
    kept_open=st.booleans(),
    look_at=st.none() | st.integers(1, 4),
    accumulated=st.integers(1, 3),
    steps_each=st.integers(1, 2),
    last_report=st.booleans(),
    evaluates=st.booleans(),
    draws=st.booleans(),
    bounded=st.booleans(),
)


@hypothesis.settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(loop=SCRIPTS, step=st.integers(1, 30))
def test_the_same_or_told_of(loop: Loop, step: int, off_the_queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same, inexact = both(loop, step, monkeypatch)
    assert same or inexact is not None
