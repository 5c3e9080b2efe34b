"""Progress of whole runs from all that they print."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.progress.run import MAX_PHASES, ProgressParser, RunProgress, epochs_of


def bar(place: int, total: int, label: str = "") -> str:
    return (
        f"{label}{': ' if label else ''}{100 * place // total:3d}%|####      | {place}/{total} [00:01<00:02,  9.5it/s]"
    )


def bars(total: int, label: str = "", places: int = 4) -> Iterator[str]:
    return (bar(place * total // places, total, label) for place in range(places + 1))


def after(lines: Iterable[str], epochs: int | None = None) -> tuple[int, int] | None:
    parser = ProgressParser(epochs)
    parser.feed(lines)
    found = parser.progress()
    return None if found is None else (found.step, found.total)


def test_a_bar_that_never_begins_again_is_the_run() -> None:
    assert after([bar(0, 500), bar(120, 500)]) == (120, 500)


def test_a_bar_that_begins_again_says_nothing_alone() -> None:
    assert after([*bars(100), bar(0, 100), bar(30, 100)]) is None


def test_an_outer_bar_is_the_run() -> None:
    def nested(epochs: int) -> Iterator[str]:
        yield bar(0, 10, "Epochs")
        for number in range(epochs):
            yield from bars(100)
            yield bar(number + 1, 10, "Epochs")

    assert after(nested(1)) == (1, 10)
    assert after([*nested(3), bar(0, 100), bar(60, 100)]) == (3, 10)
    assert after([bar(0, 10, "Epochs"), bar(0, 100), bar(60, 100)]) == (0, 10)


def test_a_bar_from_before_the_training_is_not_around_it() -> None:
    assert after([*bars(1000, "vocabulary"), *bars(100), bar(0, 100)]) is None


def test_an_evaluation_between_does_not_hide_the_run() -> None:
    assert after([bar(0, 500), bar(250, 500), *bars(20, "eval"), bar(400, 500), *bars(20, "eval")]) == (400, 500)


def test_epochs_with_bars() -> None:
    assert after(["Epoch 1/4", *bars(100), "Epoch 2/4", bar(0, 100), bar(50, 100)]) == (150, 400)
    assert after(["Epoch 1/4", *bars(100), "Epoch 2/4", *bars(100), *bars(20, "eval")]) == (200, 400)


@pytest.mark.parametrize("name", ["keras-bars.txt", "keras-lines.txt"])
def test_bars_of_keras_are_the_runs(name: str) -> None:
    """What Keras 3.15.1 wrote into a pipe (`verbose` 1 and 2): three epochs of 16 steps, each with a validation."""
    parser = ProgressParser()
    found = set[tuple[int, int]]()
    for line in re.split(r"[\r\n]", Path(__file__).with_name(name).read_bytes().decode()):
        parser.feed([line])
        found |= {now[1:]} if (now := parser.progress()) else set()
    assert {(16, 48), (32, 48), (48, 48)} <= found <= {(0, 3), *((step, 48) for step in range(49))}


def test_epochs_from_zero() -> None:
    assert after(["Epoch 0/4", *bars(100), "Epoch 1/4", bar(50, 100)]) == (150, 400)


def test_epochs_that_are_told_when_they_end() -> None:
    assert after([*bars(100), "Epoch 1/4: loss 0.3", bar(0, 100), bar(50, 100)]) == (150, 400)


def test_epochs_alone() -> None:
    assert after(["epoch 1/90 loss 0.5", "epoch 31/90 loss 0.3"]) == (30, 90)


def test_epochs_without_a_total_need_the_command_line() -> None:
    lines = ["Train Epoch: 1 [0/600 (0%)]", "Train Epoch: 1 [300/600 (50%)]"]
    assert after(lines) is None
    assert after(lines, epochs=10) == (300, 6000)


def test_a_total_that_is_passed_is_none() -> None:
    steps = ["step 1 of 2", "step 2 of 2", "step 3 of 2"]
    assert after(steps[:2]) == (2, 2)
    assert after(steps) is None
    assert after(["epoch 1/9", *steps, "epoch 2/9"]) == (1, 9)
    assert after(["epoch 1/2", "epoch 2/2", "epoch 3/2"]) is None
    assert after(["epoch 2", "epoch 19"], epochs=2) is None
    # A date, say, or a counter of something else.
    assert after(["step 19 of 2", "epoch 1/4", "epoch 2026/11", "epoch 2/4"]) == (1, 4)


def test_each_change_of_what_is_counted_begins_a_phase() -> None:
    parser = ProgressParser()
    found: list[RunProgress | None] = []
    for line in (bar(5, 50, "warm-up"), bar(50, 50, "warm-up"), bar(0, 500), bar(20, 500)):
        parser.feed([line])
        found.append(parser.progress())
    assert found == [RunProgress(1, 5, 50), RunProgress(1, 50, 50), RunProgress(2, 0, 500), RunProgress(2, 20, 500)]


def test_a_script_that_always_changes_its_mind_is_given_up() -> None:
    parser = ProgressParser()
    for total in range(10, 10 + 2 * MAX_PHASES):
        parser.feed([f"epoch 1/{total}"])
        last = parser.progress()
    assert last is None


@given(
    st.lists(
        st.one_of(
            st.text(),
            st.from_regex(r"(epoch|step) [0-9]{1,4}/[0-9]{1,4}"),
            st.builds(bar, st.integers(0, 99), st.integers(1, 9)),
        )
    )
)
def test_a_place_lies_within_the_total_and_never_goes_back_in_a_phase(lines: list[str]) -> None:
    parser = ProgressParser()
    last = RunProgress(0, 0, 0)
    for line in lines:
        parser.feed([line])
        found = parser.progress()
        if found is not None:
            assert 0 <= found.step <= found.total
            assert found.phase > last.phase or (found.total == last.total and found.step >= last.step)
            last = found


@pytest.mark.parametrize(
    ("argv", "epochs"),
    [
        (["train.py", "--epochs", "14"], 14),
        (["train.py", "--num_train_epochs=3"], 3),
        (["train.py", "--max-epochs", "90", "--lr", "0.1"], 90),
        (["train.py", "--epochs", "many"], None),
        (["train.py", "--epochs"], None),
        (["train.py", "--warmup-epochs", "5"], None),
    ],
)
def test_epochs_of_a_command_line(argv: list[str], epochs: int | None) -> None:
    assert epochs_of(argv) == epochs
