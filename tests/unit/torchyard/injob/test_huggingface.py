"""The Trainer's callback, called as the Trainer does."""

import os
import pickle
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.attempt import AttemptFolder
from tests.support.wait import until
from torchyard.injob import adoption, cadence, control, huggingface, layout


def test_the_room_for_the_next_checkpoint_is_judged_by_the_last(
    folder: AttemptFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cadence, "FIRST_S", 0.0)
    monkeypatch.setattr(adoption._AdoptionLimit, "ready_at", 0.0)
    args, flow = SimpleNamespace(output_dir="out"), SimpleNamespace(should_save=False)
    state = SimpleNamespace(global_step=3, max_steps=9, epoch=1.0, log_history=[])
    following = huggingface.TrainerHooks()
    following.on_train_begin(args, state, flow)
    until(lambda: following.on_step_end(args, state, flow) or flow.should_save, what="a checkpoint that is due")
    saved = tmp_path / "out/checkpoint-3"
    saved.mkdir(parents=True)
    saved.joinpath("model.bin").write_bytes(bytes(1 << 20))
    following.on_save(args, state, flow)
    assert len(folder.checkpoints()) == 1

    disk = SimpleNamespace(f_bavail=1, f_frsize=3 << 20)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    monkeypatch.setenv(layout.DISK_FLOOR, str(1 << 20))
    agreement = control._agreement
    assert agreement is not None
    assert agreement.cadence is not None
    assert "takes twice 1 MiB" in (agreement.cadence.lacks_room(agreement._attempt) or "")


def test_a_trainer_is_pickled_with_the_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a process that has not imported transformers yet; this module of it stands for the real one."""
    module: Any = ModuleType("transformers.trainer")
    module.TrainerCallback, module.DEFAULT_CALLBACKS = type("TrainerCallback", (), {}), []
    module.Trainer = type("Trainer", (), {"train": lambda _: None})
    monkeypatch.setitem(vars(huggingface), "TorchYardCallback", None)
    huggingface.follow_trainer(module)
    pickled = pickle.dumps(module.DEFAULT_CALLBACKS[0]())
    monkeypatch.delitem(vars(huggingface), "TorchYardCallback")
    found = {"transformers.trainer": module}
    importing = SimpleNamespace(import_module=lambda name: huggingface.follow_trainer(found[name]))
    monkeypatch.setattr(huggingface, "importlib", importing)
    assert isinstance(pickle.loads(pickled), module.TrainerCallback)
    assert not hasattr(huggingface, "Other")
