"""A framework's own checkpoints as the job's."""

import json
from pathlib import Path

import pytest

from tests.support.attempt import AttemptFolder
from torchyard.injob import adoption, place
from torchyard.injob.exceptions import EmptyCheckpointError


@pytest.fixture(autouse=True)
def working_folder(folder: AttemptFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the script runs, with a checkpoint of step 20."""
    work = tmp_path / "work"
    (work / "out" / "checkpoint-20").mkdir(parents=True)
    (work / "out" / "checkpoint-20" / "model.bin").write_text("weights")
    monkeypatch.chdir(work)
    monkeypatch.setattr(adoption._AdoptionLimit, "ready_at", 0.0)
    monkeypatch.setattr(adoption._AdoptionLimit, "skipped", None)
    return work


def _paths(checkpoint: Path) -> list[str]:
    return sorted(str(path.relative_to(checkpoint)) for path in checkpoint.rglob("*") if path.is_file())


def test_it_is_committed_under_its_place_and_shares_its_files(folder: AttemptFolder, working_folder: Path) -> None:
    size = adoption.adopt(20, "out/checkpoint-20", {"loss": 0.5})
    (committed,) = folder.checkpoints()
    assert committed.name == "step-000000020"
    assert _paths(committed) == ["adopted.json", "manifest.json", "out/checkpoint-20/model.bin"]
    assert size == sum(
        path.stat().st_size for path in committed.rglob("*") if path.name != "manifest.json" and path.is_file()
    )
    own = working_folder / "out" / "checkpoint-20" / "model.bin"
    assert own.samefile(committed / "out" / "checkpoint-20" / "model.bin")
    assert json.loads((committed / "manifest.json").read_text())["metrics"] == {"loss": 0.5}


def test_a_single_file_will_do_and_one_elsewhere_has_its_name(folder: AttemptFolder, tmp_path: Path) -> None:
    (tmp_path / "epoch=1.ckpt").write_text("state")
    adoption.adopt(7, str(tmp_path / "epoch=1.ckpt"))
    (committed,) = folder.checkpoints()
    assert _paths(committed) == ["adopted.json", "epoch=1.ckpt", "manifest.json"]


def test_what_is_not_there_is_no_checkpoint(folder: AttemptFolder) -> None:
    with pytest.raises(EmptyCheckpointError):
        adoption.adopt(1, "absent")
    assert folder.checkpoints() == []


def test_those_that_come_too_often_are_passed_over_but_the_last_is_not(
    folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adoption._AdoptionLimit, "ready_at", float("inf"))
    adoption.adopt(20, "out/checkpoint-20")
    assert folder.checkpoints() == []
    adoption.adopt_the_last()
    assert [path.name for path in folder.checkpoints()] == ["step-000000020"]
    adoption.adopt_the_last()


def test_one_that_is_wanted_is_never_passed_over(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adoption._AdoptionLimit, "ready_at", float("inf"))
    adoption.adopt(20, "out/checkpoint-20", wanted=True)
    assert len(folder.checkpoints()) == 1


def test_it_is_found_again(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert adoption.restored() is None
    adoption.adopt(20, "out/checkpoint-20")
    (committed,) = folder.checkpoints()
    monkeypatch.setenv("TORCHYARD_RESTORE_DIR", str(committed))
    place.current.cache_clear()
    found = adoption.restored()
    assert found == (str(committed / "out" / "checkpoint-20"), "out/checkpoint-20", 20)
