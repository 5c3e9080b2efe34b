"""Images from disk through loader processes, changed at random: training stops and resumes exactly."""

from pathlib import Path

import torch

from tests.support import pictures, ranks, training
from tests.support.attempt import AttemptFolder
from torchyard.injob import layout
from torchyard.recipe import Recipe
from trainer.run import run


def trained(root: Path, images: Path, *, epochs: int, restore: Path | None = None) -> dict[str, torch.Tensor]:
    data = {"name": "image_folder", "root": str(images), "size": 16, "crop": True, "flip": True}
    recipe = Recipe.model_validate(
        {"model": "tiny_vgg", "data": data, "epochs": epochs, "batch_size": 2, "num_workers": 1}
    )
    folder = AttemptFolder(root)
    ranks.run(run, 1, recipe, environment=folder.environment(restore=restore), cwd=root)
    weights: dict[str, torch.Tensor] = torch.load(folder.checkpoints()[-1] / "model.pt", weights_only=True)
    return weights


def test_augmented_images_resume_exactly(tmp_path: Path) -> None:
    pictures.image_folder(tmp_path / "images", per_class=3, side=24)
    undisturbed = trained(tmp_path / "whole", tmp_path / "images", epochs=2)
    trained(tmp_path / "first", tmp_path / "images", epochs=1)
    (first,) = (tmp_path / "first" / layout.CHECKPOINTS).iterdir()
    resumed = trained(tmp_path / "second", tmp_path / "images", epochs=2, restore=first)
    assert training.equal(undisturbed, resumed)


CODE = """
import torch
from trainer.data import DataSets, Shape, TensorData

class Recording(TensorData):
    def begin(self, seed, epoch):
        print("epoch", epoch, "of seed", seed, "begins", flush=True)

def points(count):
    data = Recording(torch.randn(count, 4), torch.zeros(count, dtype=torch.long))
    return DataSets(train=data, validation=data, shape=Shape(sample=(4,), classes=2))
"""


def test_the_jobs_own_code_is_told_each_epoch(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CODE)
    recipe = Recipe.model_validate(
        {
            "model": {"name": "custom", "target": "torch.nn:Linear", "options": {"in_features": 4, "out_features": 2}},
            "data": {"name": "custom", "target": "mine:points", "options": {"count": 5}},
            "epochs": 2,
            "seed": 7,
        }
    )
    folder = AttemptFolder(tmp_path)
    with ranks.started(run, 1, recipe, environment=folder.environment(), cwd=tmp_path) as started:
        started.results()
        lines = [line for line in started.output(0).splitlines() if "begins" in line]
    assert lines == ["epoch 0 of seed 7 begins", "epoch 1 of seed 7 begins"]
