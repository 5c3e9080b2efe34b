"""Bars of a start."""

from datetime import UTC, datetime

import pytest

from torchyard.api import StartStage, StartStageName, StartTiming
from torchyard.cli import timing
from torchyard.wire import PreloadedModules

START = StartTiming(
    attempt=1,
    begun_at=datetime(2026, 1, 1, tzinfo=UTC),
    stages=[
        StartStage(name=StartStageName.REQUEST, at_ms=0, ms=10),
        StartStage(name=StartStageName.QUEUE, at_ms=10, ms=0),
        StartStage(name=StartStageName.IMPORTS, at_ms=10, ms=1990),
    ],
    warm=False,
    cold_reason="off",
    preloaded=None,
    clock_skew_ms=-2.5,
    clock_skew_error_ms=0.5,
)


def test_each_stage_has_its_time_and_its_share() -> None:
    lines = [(line.name, line.ms, line.share) for line in timing.lines(START)]
    assert lines == [("request", "10.0 ms", "0 %"), ("queue", "0.0 ms", "0 %"), ("imports", "1,990 ms", "100 %")]


@pytest.mark.parametrize(
    ("begin", "share", "bar"),
    [(0, 1, "████████"), (0.5, 0.5, "    ████"), (0, 0, "▏"), (1, 0, "       ▏"), (0.25, 3 / 64, "  ▍")],
)
def test_a_bar_lies_where_its_stage_was_and_is_never_nothing(begin: float, share: float, bar: str) -> None:
    assert timing.bar_of(begin, share, width=8) == bar


def test_it_says_how_it_started_and_whose_clock_was_set_right() -> None:
    assert timing.how(START) == "cold start: off"
    assert timing.how(START.model_copy(update={"warm": True, "cold_reason": None})) == "warm start"
    assert timing.how(START.model_copy(update={"warm": None})) == ""
    assert timing.skew(START) == "the node's clock is 2.5 ms behind the service's (± 0.5 ms)"


@pytest.mark.parametrize(
    ("packages", "modules", "text"),
    [
        (["tidy"], 1, "loaded ahead: tidy (1 module, whose import took 2.3 s)"),
        (list("abcdefg"), 1412, "loaded ahead: a, b, c, d, e, 2 more (1,412 modules, whose import took 2.3 s)"),
    ],
)
def test_it_says_what_was_loaded_ahead(packages: list[str], modules: int, text: str) -> None:
    assert timing.loaded(PreloadedModules(packages=packages, modules=modules, seconds=2.34)) == text


def test_a_start_of_which_nothing_is_known_has_no_bars() -> None:
    assert list(timing.lines(START.model_copy(update={"stages": []}))) == []
