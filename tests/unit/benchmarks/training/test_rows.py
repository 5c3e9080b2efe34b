"""From a training's result to figures."""

from benchmarks.training import rows


def test_figures_name_the_ranks_and_their_targets() -> None:
    overhead, step = rows.figures("loop", 2, {"overhead": 2.5, "by_hand": 5})
    assert (overhead.name, overhead.unit, overhead.target, overhead.met) == (
        "loop: overhead, 2 ranks",
        "%",
        "< 2",
        False,
    )
    assert (step.name, step.value, step.unit, step.target, step.met) == ("loop: by hand, 2 ranks", 5.0, "ms", "", True)
    (alone,) = rows.figures("checkpoint", 1, {"stall": 8.8})
    assert (alone.name, alone.met) == ("checkpoint: stall, 1 rank", True)
