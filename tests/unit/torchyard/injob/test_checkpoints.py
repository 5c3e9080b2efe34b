import errno
import json
import math
from pathlib import Path
from typing import IO

import pytest

import torchyard
from tests.support import attempt
from tests.support.attempt import AttemptFolder
from torchyard.injob import files, layout
from torchyard.injob.exceptions import CheckpointError, EmptyCheckpointError, NoProcessGroupError


def test_committed_with_a_manifest(folder: AttemptFolder) -> None:
    with torchyard.checkpoint(step=12, metrics={"val/accuracy": 0.9, "loss": math.nan}) as place:
        assert place.name == "step-000000012.tmp"
        (place / "state.pt").write_bytes(b"12345")
        (place / "shards").mkdir()
        (place / "shards/0").write_bytes(b"1")
    (committed,) = folder.checkpoints()
    assert committed.name == "step-000000012"
    manifest = json.loads((committed / "manifest.json").read_text())
    assert manifest.pop("created_us") > 1_700_000_000_000_000
    assert manifest == {
        "step": 12,
        "metrics": {"val/accuracy": 0.9, "loss": "nan"},
        "files": [{"path": "shards/0", "size": 1}, {"path": "state.pt", "size": 5}],
    }


def test_a_failing_body_leaves_the_others_intact(folder: AttemptFolder) -> None:
    with torchyard.checkpoint(step=1) as place:
        (place / "state").write_text("first")

    def fail() -> None:
        with torchyard.checkpoint(step=2) as place:
            (place / "state").write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert [path.name for path in folder.checkpoints()] == ["step-000000001"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_discards_too(folder: AttemptFolder, interrupt: type[BaseException]) -> None:
    def leave() -> None:
        with torchyard.checkpoint(step=2) as place:
            (place / "state").write_text("half")
            raise interrupt

    with pytest.raises(interrupt):
        leave()
    assert folder.checkpoints() == []


def test_an_empty_one_is_refused(folder: AttemptFolder) -> None:
    with pytest.raises(EmptyCheckpointError, match="inside the `with` block"), torchyard.checkpoint(step=1):
        pass
    assert folder.checkpoints() == []


def test_links_and_our_own_name_are_refused(folder: AttemptFolder) -> None:
    with pytest.raises(CheckpointError, match="is a link"), torchyard.checkpoint(step=1) as place:
        (place / "link").symlink_to("/etc/passwd")
    with pytest.raises(CheckpointError, match=r"manifest\.json"), torchyard.checkpoint(step=1) as place:
        (place / "manifest.json").write_text("{}")
    assert folder.checkpoints() == []


def test_ranks_without_a_process_group_are_refused(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(NoProcessGroupError, match="between init and destroy"), torchyard.checkpoint(step=1):
        pass


def test_what_a_killed_process_left_is_replaced(folder: AttemptFolder) -> None:
    stale = folder.root / "job/checkpoints/step-000000003.tmp"
    stale.mkdir()
    (stale / "half").write_text("x")
    with torchyard.checkpoint(step=3) as place:
        (place / "state").write_text("whole")
    (committed,) = folder.checkpoints()
    assert sorted(file.name for file in committed.iterdir()) == ["manifest.json", "state"]


def test_the_first_at_a_step_stands(folder: AttemptFolder) -> None:
    for text in ("first", "second"):
        with torchyard.checkpoint(step=3) as place:
            (place / "state").write_text(text)
    (committed,) = folder.checkpoints()
    assert (committed / "state").read_text() == "first"


def test_a_stop_leaves_after_the_commit(folder: AttemptFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.ask("stop")
    assert torchyard.should_checkpoint()
    assert folder.outcome() is None
    with pytest.raises(SystemExit) as left, torchyard.checkpoint(step=5) as place:
        (place / "state").write_text("x")
    assert left.value.code == 0
    assert folder.outcome() == {"stopped_at_step": 5}
    assert [path.name for path in folder.checkpoints()] == ["step-000000005"]
    assert capsys.readouterr().err == "torchyard: stopped at step 5\n"


def test_a_stop_whose_checkpoint_failed_goes_on(folder: AttemptFolder) -> None:
    folder.ask("stop")
    assert torchyard.should_checkpoint()
    with pytest.raises(EmptyCheckpointError), torchyard.checkpoint(step=5):
        pass
    assert "Nothing was written" in folder.outcome()["unsaved"]
    assert torchyard.should_checkpoint()


def test_one_that_cannot_be_begun_is_not_due_at_each_step(folder: AttemptFolder) -> None:
    folder.ask("checkpoint")
    assert torchyard.should_checkpoint()
    (folder.root / layout.CHECKPOINTS).rmdir()
    (folder.root / layout.CHECKPOINTS).write_text("a file is where the folder was")
    with pytest.raises(OSError, match="checkpoints"), torchyard.checkpoint(step=5):
        pass
    assert not torchyard.should_checkpoint()


def test_off_the_queue_it_writes_here_and_replaces(off_the_queue: Path) -> None:
    for text in ("first", "second"):
        with torchyard.checkpoint(step=3) as place:
            (place / "state").write_text(text)
    assert [path.name for path in (off_the_queue / "checkpoints").iterdir()] == ["step-000000003"]
    assert (off_the_queue / "checkpoints/step-000000003/state").read_text() == "second"


def test_restore(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert torchyard.restore() is None
    monkeypatch.setenv("TORCHYARD_RESTORE_DIR", str(tmp_path))
    assert torchyard.restore() == tmp_path
    monkeypatch.setenv("TORCHYARD_RESTORE_DIR", str(tmp_path / "gone"))
    with pytest.raises(CheckpointError, match="not there"):
        torchyard.restore()


def test_restore_off_the_queue(off_the_queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_RESTORE_DIR", str(off_the_queue))
    assert torchyard.restore() is None


def test_an_attempt_folder_that_is_gone_is_off_the_queue(off_the_queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt.forget(monkeypatch)
    monkeypatch.setenv("TORCHYARD_ATTEMPT_DIR", str(off_the_queue / "gone"))
    assert torchyard.should_checkpoint() is False


def test_json_is_whole_or_absent(tmp_path: Path) -> None:
    files.write_json(str(tmp_path / "a.json"), {"a": 1})
    assert files.read_json(str(tmp_path / "a.json")) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert files.read_json(str(tmp_path / "b.json")) is None


def test_a_file_stays_what_it_was_until_another_is_whole(tmp_path: Path) -> None:
    model = tmp_path / "model.pt"
    files.write_whole(str(model), lambda file: file.writelines([b"old"]))

    def torn(file: IO[bytes]) -> None:
        file.write(b"ne")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        files.write_whole(str(model), torn)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("model.pt", b"old")]
