"""Checkpoints of `attach`: beside the training, when due, on a stop, on a full disk."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torchyard
from tests.support import attempt, disks, wait
from tests.support.attempt import AttemptFolder
from torchyard.injob import cadence, control, layout
from torchyard.injob.attach import TrainingRun
from torchyard.injob.exceptions import AttachError, ResumeError


class Ballast:
    """State of a size that can be changed."""

    def __init__(self) -> None:
        self.mebibytes = 0

    def state_dict(self) -> dict[str, Any]:
        return {"bytes": torch.zeros(self.mebibytes << 20, dtype=torch.uint8)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.mebibytes = len(state["bytes"]) >> 20


@pytest.fixture
def tight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AttemptFolder]:
    """An attempt on a disk of 4 MiB."""
    with disks.small(tmp_path / "disk", 4) as disk:
        yield from attempt.entered(AttemptFolder(disk / "attempt"), monkeypatch)


def kept(folder: AttemptFolder) -> list[str]:
    return [path.name for path in folder.checkpoints()]


def test_the_training_goes_on_while_it_is_written(folder: AttemptFolder) -> None:
    model = nn.Linear(64, 64)
    before = model.weight.detach().clone()
    run = torchyard.attach(model=model)
    run.save(metrics={"loss": torch.tensor(0.5)})
    # It gets its name when all ranks know that it is whole, at a look.
    assert kept(folder) == ["step-000000000.tmp"]
    with torch.no_grad():
        model.weight.zero_()
    wait.until(lambda: run.checkpoint_if_due() or kept(folder) == ["step-000000000"])
    (checkpoint,) = folder.checkpoints()
    assert torch.equal(torch.load(checkpoint / "model.pt", weights_only=True)["weight"], before)
    manifest = (checkpoint / "manifest.json").read_text()
    assert '"metrics": {"loss": 0.5}' in manifest
    assert ".part" not in manifest


def test_the_next_one_waits_for_the_one_before(folder: AttemptFolder) -> None:
    run = torchyard.attach(model=nn.Linear(2, 2))
    for _ in range(3):
        run.report()
        run.save()
    run.finish()
    assert kept(folder) == ["step-000000001", "step-000000002", "step-000000003"]


def test_the_end_of_the_epochs_waits_for_it(folder: AttemptFolder) -> None:
    run = torchyard.attach(model=nn.Linear(2, 2))
    for epoch in run.epochs(2):
        run.report()
        if epoch == 1:
            run.save()
    assert kept(folder) == ["step-000000002"]


def test_the_end_of_the_process_waits_for_it(folder: AttemptFolder) -> None:
    run = torchyard.attach(model=nn.Linear(2, 2))
    run.save()
    run._saver._writer._close()
    assert kept(folder) == ["step-000000000"]


def refuse(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_thread_that_cannot_be_had_costs_the_checkpoint_not_the_training(
    folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = torchyard.attach(model=nn.Linear(2, 2))
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        assert run.save()  # all ranks wait for it, and learn together that one could not write
        assert run.finish() == "no checkpoint of step 0: can't start new thread"
    assert kept(folder) == []
    run.save()
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        assert run.finish() == "no checkpoint of step 0: can't start new thread"
    run.save()
    assert run.finish() is None
    assert kept(folder) == ["step-000000000"]


def test_a_stop_is_on_the_disk_before_the_job_leaves(folder: AttemptFolder) -> None:
    run = torchyard.attach(model=nn.Linear(2, 2))
    run.save()
    folder.ask("stop")
    with pytest.raises(SystemExit) as left:
        wait.until(run.report, what="the stop")
    assert left.value.code == 0
    assert kept(folder) == ["step-000000000", f"step-{run.step:09d}"]
    assert folder.outcome() == {"stopped_at_step": run.step}


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_full_disk_leaves_the_previous_one_intact(
    asynchronous: bool, tight: AttemptFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    ballast, serials = Ballast(), iter(range(1, 10))
    model = nn.Linear(8, 8)
    run = torchyard.attach(model=model, ballast=ballast, asynchronous=asynchronous)

    def ask(mebibytes: int) -> None:
        ballast.mebibytes = mebibytes
        run.advance()
        tight.ask("checkpoint", serial=next(serials))
        wait.until(run.checkpoint_if_due, what="the request")
        run.finish()

    ask(1)
    ask(6)
    assert kept(tight) == ["step-000000001"]
    assert "no checkpoint of step 2, the training goes on: " in capsys.readouterr().err
    ask(0)
    assert kept(tight) == ["step-000000001", "step-000000003"]
    fresh = torchyard.attach(model=model, ballast=ballast, restore=tight.checkpoints()[0])
    assert (fresh.step, ballast.mebibytes) == (1, 1)

    ballast.mebibytes = 6
    assert run.save() is asynchronous  # asked for by the script itself; one in the background fails later
    run.finish()  # the disk that is full while it writes is the one that the stop is asked for on
    tight.ask("stop", serial=next(serials))
    with pytest.raises(SystemExit) as left:
        wait.until(run.report, what="the stop")
    assert left.value.code == 1
    assert "cannot be written" in tight.outcome()["unsaved"]
    assert "nothing was saved, because it cannot be written" in capsys.readouterr().err


class Faulty(Ballast):
    """Its state cannot be had, whatever the reason."""

    broken = False

    def state_dict(self) -> dict[str, Any]:
        if self.broken:
            raise AttributeError("no attribute 'dl_state_dict'")
        return super().state_dict()


@pytest.mark.parametrize("asynchronous", [True, False])
def test_no_fault_of_a_checkpoint_ends_a_training(
    asynchronous: bool, folder: AttemptFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    faulty = Faulty()
    run = torchyard.attach(faulty=faulty, asynchronous=asynchronous)
    faulty.broken = True
    folder.ask("checkpoint")
    run.advance()
    wait.until(run.checkpoint_if_due, what="the request")
    reason = "AttributeError: no attribute 'dl_state_dict'"
    assert f"no checkpoint of step 1, the training goes on: {reason}" in capsys.readouterr().err
    note = folder.root / layout.MARKS / layout.note_mark("checkpoint-failed", 0)
    assert json.loads(note.read_text()) == {"step": 1, "text": reason}
    assert not run.checkpoint_if_due()  # until the next is due
    folder.ask("stop", serial=2)
    with pytest.raises(SystemExit):
        wait.until(run.report, what="the stop")
    assert folder.outcome() == {"unsaved": reason}
    assert kept(folder) == []


def test_it_chooses_when_and_takes_one_at_the_end(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    run = torchyard.attach(model=nn.Linear(2, 2))
    monkeypatch.setattr(cadence, "FIRST_S", 0.0)
    control._agreement.cadence = cadence.Cadence()  # type: ignore[union-attr]
    for _ in run.epochs(1):
        wait.until(lambda: run.report() or run._saved_step > 0, what="the first one")
        run.advance()
    assert kept(folder)[-1] == f"step-{run.step:09d}"
    assert len(kept(folder)) >= 2


def test_never_is_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in attempt.entered(AttemptFolder(tmp_path / "attempt"), monkeypatch):
        monkeypatch.setenv(layout.CHECKPOINT_EVERY, layout.NEVER)
        run = torchyard.attach(model=nn.Linear(2, 2))
        for _ in run.epochs(2):
            run.report()
        assert kept(folder) == []


def test_a_run_without_anything_to_save_takes_none(folder: AttemptFolder) -> None:
    run = torchyard.attach()
    for _ in run.epochs(2):
        run.report()
    assert kept(folder) == []


def test_what_no_rank_had_of_its_own_begins_anew(off_the_queue: Path) -> None:
    model = nn.Linear(3, 2)
    torchyard_run(model, ranks={"kept": Ballast()})
    checkpoint = off_the_queue / "checkpoints/step-000000000"
    run = torchyard.attach(model=model, ranks={"kept": Ballast(), "new": Ballast()}, restore=checkpoint)
    assert run.inexact == "it has no new of each rank's own: it begins anew"


def test_what_does_not_fit_is_named_and_changes_nothing(off_the_queue: Path) -> None:
    model = nn.Linear(3, 2)
    torchyard_run(model, optimizer=torch.optim.SGD(model.parameters()), ballast=Ballast(), extra={"lr": 1})
    checkpoint = off_the_queue / "checkpoints/step-000000000"

    def refused(module: nn.Module, optimizer: Any = None, **options: Any) -> str:
        before = [value.clone() for value in module.state_dict().values()]
        optimizer = optimizer or torch.optim.SGD(module.parameters())
        with pytest.raises(ResumeError) as error:
            torchyard.attach(model=module, optimizer=optimizer, restore=checkpoint, **options)
        assert all(map(torch.equal, before, module.state_dict().values()))
        return str(error.value)

    assert "there is weight (2, 3), here (2, 4)" in refused(nn.Linear(4, 2), ballast=Ballast())
    assert "the model lacks bias" in refused(nn.Linear(3, 2, bias=False), ballast=Ballast())
    assert "it lacks 0.weight, 0.bias" in refused(nn.Sequential(nn.Linear(3, 2)), ballast=Ballast())
    assert "it also has ballast" in refused(nn.Linear(3, 2))
    assert "it has no ema" in refused(nn.Linear(3, 2), ballast=Ballast(), ema=Ballast())
    assert "give sharded=False" in refused(nn.Linear(3, 2), ballast=Ballast(), sharded=True)
    other = nn.Linear(3, 2)
    adam = torch.optim.Adam(other.parameters())
    assert "its optimizer is SGD, here is Adam" in refused(other, adam, ballast=Ballast())
    split = torch.optim.SGD([{"params": [other.weight]}, {"params": [other.bias]}])
    assert "[2] parameters by group, here are [1, 1]" in refused(other, split, ballast=Ballast())

    def check(extra: dict[str, Any]) -> None:
        raise ValueError(extra)

    with pytest.raises(ValueError, match="'lr': 1"):
        torchyard.attach(model=model, restore=checkpoint, check=check)
    (checkpoint / "training.pt").unlink()
    assert "is this a checkpoint of torchyard.attach?" in refused(nn.Linear(3, 2))


def torchyard_run(model: nn.Module, **options: Any) -> TrainingRun:
    run = torchyard.attach(model=model, **options)
    run.save()
    run.finish()
    return run


def test_what_is_no_plain_data_is_refused_at_once() -> None:
    class Odd:
        def state_dict(self) -> dict[str, Any]:
            return {"inner": [object()]}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            raise AssertionError

    with pytest.raises(
        AttachError, match=r"odd\.state_dict\(\)\['inner'\]\[0\] is a object: let state_dict\(\) return"
    ):
        torchyard.attach(odd=Odd())
    with pytest.raises(AttachError, match=r"extra\['now'\]"):
        torchyard.attach(extra={"now": object()})


@pytest.mark.parametrize("wrap", [nn.DataParallel, lambda model: nn.Sequential(nn.DataParallel(model)), torch.compile])
def test_wrappers_leave_no_trace_in_the_names(wrap: Any, off_the_queue: Path) -> None:
    torchyard_run(wrap(nn.Linear(3, 2)))
    saved = torch.load(off_the_queue / "checkpoints/step-000000000/model.pt", weights_only=True)
    assert {name.rpartition(".")[2] for name in saved} == {"weight", "bias"}
    assert not any("module" in name or "_orig_mod" in name for name in saved)
    other = wrap(nn.Linear(3, 2))
    torchyard.attach(model=other, restore=off_the_queue / "checkpoints/step-000000000")
    assert all(map(torch.equal, other.state_dict().values(), saved.values()))


def test_a_module_of_that_name_keeps_it(off_the_queue: Path) -> None:
    class StatefulCursor(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = nn.Linear(2, 2)

    torchyard_run(StatefulCursor())
    saved = torch.load(off_the_queue / "checkpoints/step-000000000/model.pt", weights_only=True)
    assert list(saved) == ["module.weight", "module.bias"]


def test_tied_weights_are_written_once(off_the_queue: Path) -> None:
    model = nn.Sequential(nn.Linear(300, 300), nn.Linear(300, 300))
    model[1].weight = model[0].weight
    torchyard_run(model)
    file = off_the_queue / "checkpoints/step-000000000/model.pt"
    assert file.stat().st_size < 1.5 * model[0].weight.nbytes
    assert set(torch.load(file, weights_only=True)) == {"0.weight", "0.bias", "1.weight", "1.bias"}


def test_stages_of_one_model_and_two_models_of_one_name(off_the_queue: Path) -> None:
    whole = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4))
    stages = [nn.Sequential(), nn.Sequential()]
    for number, layer in whole.named_children():
        stages[int(number)].add_module(number, layer)
    torchyard_run(stages)  # type: ignore[arg-type]
    torchyard.attach(model=whole, restore=off_the_queue / "checkpoints/step-000000000")
    with pytest.raises(AttachError, match="two of the models both have 'weight'"):
        torchyard_run([nn.Linear(2, 2), nn.Linear(2, 2)])  # type: ignore[arg-type]
