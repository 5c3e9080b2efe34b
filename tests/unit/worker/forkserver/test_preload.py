"""What a module leaves in its process is seen before it is loaded for others."""

import logging
import os
import sys
from pathlib import Path

import pytest

from torchyard.injob import imported
from worker.forkserver import preload
from worker.forkserver.preload import Preload, parents, recorded_environment, state


def test_variables_that_are_looked_up_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDY_A", "1")
    behind = os.environ._data  # type: ignore[attr-defined]
    with recorded_environment() as names:
        os.environ.get("TIDY_A")
        os.getenv("TIDY_B")
        assert "TIDY_C" not in os.environ
        os.environ["TIDY_D"] = "4"
    assert names == {"TIDY_A", "TIDY_B", "TIDY_C"}
    assert os.environ.pop("TIDY_D") == "4"
    assert os.environ._data is behind  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name", ["RANK", "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "TMPDIR", "TORCHYARD_JOB_ID", "TORCHELASTIC_RUN_ID"]
)
def test_what_each_attempt_has_its_own_of_is_known(name: str) -> None:
    assert preload._is_own(name)
    assert not preload._is_own("HF_HOME")


def test_what_is_changed_for_the_whole_process_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = state()
    assert state() == before
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "excepthook", print)
    monkeypatch.setattr(logging.root, "level", 5)
    assert {what for what, value in state().items() if value != before[what]} == {
        *("the module search path", "what is done with exceptions", "the root logger")
    }


def test_nothing_is_loaded_when_there_is_no_time() -> None:
    loader = Preload()
    loader.load(["a.module.that.is.nowhere"], seconds=-1)
    assert (loader.struck, loader.count) == ({}, 0)
    assert loader.told() == {"packages": [], "modules": 0, "seconds": 0.0}


def test_what_lies_in_a_module_that_is_struck_off_is_not_tried() -> None:
    loader = Preload()
    loader.load(["nowhere_at_all", "nowhere_at_all.deep", "json"])
    assert loader.struck == {"nowhere_at_all": "it is not installed"}


def test_packages_are_named_from_the_outermost() -> None:
    assert list(parents("a.b.c")) == ["a", "a.b"]


def test_jobs_and_servers_know_one_site_packages() -> None:
    assert set(preload._site_packages()) == set(imported.site_packages())
