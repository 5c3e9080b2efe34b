"""The recipe files: each that needs a download has a twin that trains here for real."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import ranks
from tests.support.attempt import AttemptFolder
from torchyard.injob import layout
from torchyard.recipe.data import Images
from torchyard.spec import JobSpec
from trainer.run import run

EXAMPLES = Path(__file__).parents[3] / "examples"
TWINS = sorted((EXAMPLES / "offline").glob("*.yaml"))
#: Steps of one process, and the score that it should beat after them.
EXPECTED: dict[str, tuple[int, str, float]] = {
    "alexnet_model_parallel": (6, "val/loss", math.log(10) * 1.1),
    "deeplabv3_voc": (20, "val/pixel_accuracy", 0.5),
    "mlp_mnist": (60, "val/accuracy", 0.8),
    "mnist_cnn": (69, "val/accuracy", 0.5),
    "stl10": (2, "val/loss", 20),
    "vgg16_imagenet_ddp": (6, "val/loss", math.log(10) * 1.1),
    "vgg16_imagenet_model_parallel": (6, "val/loss", math.log(10) * 1.1),
}


def content(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: path.stem)
def test_a_twin_differs_in_data_size_and_epochs_only(twin: Path) -> None:
    here, there = content(twin), content(EXAMPLES / twin.name)
    assert here.pop("name") == f"{there.pop('name')}-offline"
    for recipe in (here["recipe"], there["recipe"]):
        for key in ("model", "data", "epochs"):
            del recipe[key]
    assert here == there
    assert not isinstance(JobSpec.model_validate(content(twin)).recipe.data, Images)  # type: ignore[union-attr]


def test_every_example_that_needs_images_has_a_twin() -> None:
    specs = {path.stem: JobSpec.model_validate(content(path)) for path in EXAMPLES.glob("*.yaml")}
    needing = {name for name, spec in specs.items() if spec.recipe and isinstance(spec.recipe.data, Images)}
    assert needing == {twin.stem for twin in TWINS} == set(EXPECTED)


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: path.stem)
def test_a_twin_trains(twin: Path, tmp_path: Path) -> None:
    spec = JobSpec.model_validate(content(twin))
    folder = AttemptFolder(tmp_path)
    environment = folder.environment() | {layout.DEVICES: str(spec.resources.gpus)}
    ranks.run(run, 1, spec.recipe, environment=environment, cwd=tmp_path)
    steps, score, bound = EXPECTED[twin.stem]
    values = folder.series(score)
    assert max(values) == steps
    assert values[steps] < bound if score == "val/loss" else values[steps] > bound, values
    assert folder.checkpoints()
