"""The recipe files: each that needs a download has a twin that trains here for real."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import ranks
from tests.support.attempt import AttemptFolder
from torchyard.injob import layout
from torchyard.recipe.data import Images
from torchyard.spec import ALL, JobSpec
from trainer.run import run

EXAMPLES = Path(__file__).parents[3] / "examples"
TWINS = sorted((EXAMPLES / "offline").glob("*.yaml"))
#: Processes, steps, and a score with what it must reach; chance is 0.1, for mean_iou 0.18 (all background).
EXPECTED: dict[str, tuple[int, int, str, float]] = {
    "alexnet_model_parallel": (1, 300, "val/accuracy", 0.8),
    "deeplabv3_voc": (4, 60, "val/mean_iou", 0.7),
    "mlp_mnist": (1, 60, "val/accuracy", 0.8),
    "mnist_cnn": (2, 72, "val/accuracy", 0.6),
    "stl10": (2, 12, "val/accuracy", 0.6),
    "vgg16_imagenet_ddp": (2, 300, "val/accuracy", 0.8),
    "vgg16_imagenet_model_parallel": (1, 300, "val/accuracy", 0.8),
}


def content(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


def spec_of(path: Path) -> JobSpec:
    """The spec as a box with four devices stores it."""
    loaded = content(path)
    if loaded["resources"]["gpus"] == ALL:
        loaded["resources"]["gpus"] = 4
    return JobSpec.model_validate(loaded)


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: path.stem)
def test_a_twin_differs_in_data_size_and_epochs_only(twin: Path) -> None:
    here, there = content(twin), content(EXAMPLES / twin.name)
    assert here.pop("name") == f"{there.pop('name')}-offline"
    for recipe in (here["recipe"], there["recipe"]):
        for key in ("model", "data", "epochs"):
            del recipe[key]
    assert here == there
    assert not isinstance(spec_of(twin).recipe.data, Images)  # type: ignore[union-attr]


def test_every_example_that_needs_images_has_a_twin() -> None:
    specs = {path.stem: spec_of(path) for path in EXAMPLES.glob("*.yaml")}
    needing = {name for name, spec in specs.items() if spec.recipe and isinstance(spec.recipe.data, Images)}
    assert needing == {twin.stem for twin in TWINS} == set(EXPECTED)


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: path.stem)
def test_a_twin_learns_on_the_ranks_of_its_recipe(twin: Path, tmp_path: Path) -> None:
    spec = spec_of(twin)
    assert spec.recipe is not None
    folder = AttemptFolder(tmp_path)
    world, steps, score, bound = EXPECTED[twin.stem]
    assert world == spec.world_size
    environment = folder.environment() | {layout.DEVICES: str(spec.resources.gpus)}
    ranks.run(run, world, spec.recipe, environment=environment, cwd=tmp_path)
    values = folder.series(score)
    assert max(values) == steps
    assert values[steps] > bound, values
    assert folder.checkpoints()
    proof = json.loads((folder.root / layout.OUTPUT / "strategy.json").read_text())
    assert (proof["strategy"], proof["world_size"]) == (spec.recipe.strategy.name, world)
    if proof["strategy"] == "model_parallel":
        (rank,) = proof["ranks"]
        assert len(rank["places"]) == spec.resources.gpus
