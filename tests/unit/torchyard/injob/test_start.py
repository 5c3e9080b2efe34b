"""Moments of rank 0's start, noted once."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torchyard.injob import layout, place, start
from worker.shim import elastic


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Names in the file of the marks."""
    (tmp_path / layout.MARKS).mkdir(parents=True)
    monkeypatch.setattr(place, "current", lambda: place.CurrentAttempt(folder=str(tmp_path), checkpoint_every=None))
    monkeypatch.setenv("RANK", "0")
    file = tmp_path / layout.MARKS / layout.start_mark(0)
    return lambda: [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []


def test_other_ranks_note_nothing(marks: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    start.note("torch")
    monkeypatch.setenv("RANK", "1")
    start.note("joined")
    assert marks() == ["torch"]


def test_torchruns_agent_is_no_rank(marks: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(start.AGENT, "5")
    start.note("torch")
    monkeypatch.delenv(start.AGENT)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "torch.distributed.run", "--nnodes=2"])
    start.note("torch")
    assert start.AGENT == elastic.TIMES
    assert marks() == []


def test_nothing_off_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "current", lambda: None)
    start.note("torch")


def test_a_process_group_is_noted_once_and_the_function_is_torchs_again(marks: Callable[[], list[str]]) -> None:
    def init_process_group(backend: str) -> str:
        return backend

    distributed: Any = SimpleNamespace(init_process_group=init_process_group)
    start.follow_process_group(distributed)
    kept = distributed.init_process_group
    assert kept.__name__ == "init_process_group"
    assert kept(backend="gloo") == "gloo"
    assert distributed.init_process_group is init_process_group
    kept(backend="gloo")
    assert marks() == ["joined"]


def test_one_that_fails_is_not_noted(marks: Callable[[], list[str]]) -> None:
    def init_process_group() -> None:
        raise ValueError("no store")

    distributed: Any = SimpleNamespace(init_process_group=init_process_group)
    start.follow_process_group(distributed)
    with pytest.raises(ValueError, match="no store"):
        distributed.init_process_group()
    assert marks() == []


@pytest.mark.parametrize("compiling", [False, True])
def test_the_first_step_is_noted_unless_it_is_compiled(marks: Callable[[], list[str]], compiling: bool) -> None:
    hooks: list[Callable[..., None]] = []
    torch = SimpleNamespace(compiler=SimpleNamespace(is_compiling=lambda: compiling))
    start.follow_optimizers(SimpleNamespace(register_optimizer_step_post_hook=hooks.append, torch=torch))
    for _ in range(2):
        hooks[0](None, (), {})
    assert marks() == ([] if compiling else ["stepped"])


def test_an_old_torch_has_no_such_hook() -> None:
    start.follow_optimizers(SimpleNamespace())
