"""The subject of a comparison: the recipe, its batch, and its stand-in where nothing can be downloaded."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError

from torchyard.recipe import Recipe
from torchyard.recipe.data import Images
from trainer.bench import plan
from trainer.command import read_recipe
from trainer.exceptions import RecipeError

#: On the CPU convolutions, which compute much for each byte of gradient; on GPUs what others publish.
SMALL = {
    "model": "digits_cnn",
    "data": {"name": "synthetic", "samples": 8192, "shape": [1, 16, 16]},
    "optim": "sgd",
}
LARGE = {
    "model": {"name": "resnet", "depth": 50},
    "data": {"name": "synthetic", "samples": 4096, "shape": [3, 224, 224], "classes": 1000},
    "optim": "sgd",
}
#: Samples of an effective batch, or those of each device where model and data are named.
BATCH = 256
PER_DEVICE = 8
#: Loader processes of each rank that reads images from a disk beside a GPU.
LOADERS = 4
CLASSES = {"mnist": 10, "cifar10": 10, "cifar100": 100, "stl10": 10, "voc": 21, "image_folder": 1000}
TWIN_SAMPLES = 256
#: Height and width of the twin's images, and its model for such with a class for each pixel, without GPUs.
CPU_SIZE = 64
CPU_SEGMENTER = "tiny_segmenter"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The recipe and batch that every strategy is measured with."""

    recipe: Recipe
    strategies: tuple[str, ...]
    batch: int
    #: Whether the batch is that of each device; else of all together, the same in every case.
    per_device: bool
    #: Model and data that were asked for.
    model: str
    data: str
    #: What must be known of a stand-in.
    note: str = ""

    @property
    def title(self) -> str:
        size = f"{self.batch} samples a device" if self.per_device else f"effective batch {self.batch}"
        what = f"{self.recipe.model.name} on {self.recipe.data.name}"
        if self.note:
            what += f" (offline twin of {self.model} on {self.data})"
        return f"{what}, {size}"


def choose(options: argparse.Namespace, gpus: int) -> Comparison:
    """Read the comparison from the command line; raises RecipeError with the mend."""
    named = options.model is not None
    if named != (options.data is not None):
        raise RecipeError("--model and --data go together: give both, or neither")
    if named and options.recipe:
        raise RecipeError("--recipe holds model and data: leave --model and --data out")
    given = {"model": _noun(options.model), "data": _noun(options.data), "optim": "sgd"} if named else None
    recipe = read_recipe(options.recipe) if options.recipe else _valid(given or (LARGE if gpus else SMALL))
    asked, note = recipe, ""
    if options.offline:
        recipe, note = twin(recipe, gpus)
    elif named and gpus and isinstance(recipe.data, Images):
        recipe = recipe.model_copy(update={"num_workers": LOADERS})
    per_device = options.per_device or (PER_DEVICE if named and not options.batch else None)
    return Comparison(
        recipe=recipe,
        strategies=tuple(options.strategies or (plan.COMMON if named else plan.STRATEGIES)),
        batch=per_device or options.batch or BATCH,
        per_device=per_device is not None,
        model=asked.model.name,
        data=asked.data.name,
        note=note,
    )


def twin(recipe: Recipe, gpus: int) -> tuple[Recipe, str]:
    """The recipe on made-up images instead of downloaded ones, with a sentence on what that is.

    Of the same shape on GPUs; without any, images and a model for each pixel that a CPU can train.
    """
    data = recipe.data
    if not isinstance(data, Images):
        raise RecipeError(f"--offline: data {data.name} need no download: leave it out")
    side = data.side if gpus or not data.segments else min(data.side, CPU_SIZE)
    model = recipe.model.model_dump(mode="json", by_alias=True)
    if "weights" in model:
        model["weights"] = "none"
    if data.segments and not gpus:
        model = {"name": CPU_SEGMENTER}
    made = {"model": model, "data": _made_up(data, side, CLASSES[data.name])}
    changed = _valid({**recipe.model_dump(mode="json", exclude_unset=True), **made})
    asked = f"{recipe.model.name} on {data.name}"
    small = changed.model.name != recipe.model.name
    means = f"how fast {asked} trains" if small else f"what reading and decoding {data.name} costs"
    return changed, (
        f"This is the offline twin of {asked}: model {changed.model.name}, {TWIN_SAMPLES} made-up images of {side} by "
        f"{side} with {CLASSES[data.name]} classes. Nothing was downloaded, and nothing here says {means}."
    )


def _made_up(data: Images, side: int, classes: int) -> dict[str, Any]:
    common = {"samples": TWIN_SAMPLES, "validation_samples": 8, "classes": classes}
    if data.segments:
        return {"name": "synthetic_segmentation", "size": side, **common}
    return {"name": "synthetic", "shape": [data.channels, side, side], **common}


def _noun(text: str) -> Any:
    """A name, or ``{name: …, option: value}`` as YAML."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise RecipeError(f"{text!r} is no noun of a recipe: give a name, or '{{name: voc, root: /data}}'") from error


def _valid(given: Mapping[str, Any]) -> Recipe:
    try:
        return Recipe.model_validate(dict(given))
    except ValidationError as error:
        lines = (
            f"{'.'.join(map(str, wrong['loc'])) or 'recipe'}: {wrong['msg'].removeprefix('Value error, ')}"
            for wrong in error.errors()
        )
        raise RecipeError("\n".join(lines)) from error
