"""What is compared, from the command line."""

import pytest

from trainer.bench import choice
from trainer.bench.__main__ import arguments
from trainer.exceptions import RecipeError

VOC = ["--model", "deeplabv3_resnet101", "--data", "voc"]


def chosen(*words: str, gpus: int = 0) -> choice.Comparison:
    return choice.choose(arguments(list(words)), gpus)


def test_named_model_and_data_are_compared_as_most_people_train() -> None:
    found = chosen(*VOC, gpus=4)
    assert (found.recipe.model.name, found.recipe.data.name) == ("deeplabv3_resnet101", "voc")
    assert (found.strategies, found.batch, found.per_device) == (("dp", "ddp"), 8, True)
    assert found.recipe.num_workers == choice.LOADERS
    assert found.title == "deeplabv3_resnet101 on voc, 8 samples a device"
    assert not found.note


def test_nothing_named_keeps_the_effective_batch_and_all_strategies() -> None:
    found = chosen()
    assert (found.batch, found.per_device, len(found.strategies)) == (256, False, 5)
    assert chosen("--per-device", "4").per_device
    assert (chosen(*VOC, "--batch", "64").batch, chosen(*VOC, "--batch", "64").per_device) == (64, False)


def test_the_twin_has_the_shape_of_the_data_on_gpus_and_is_small_without() -> None:
    large = chosen(*VOC, "--offline", gpus=1)
    assert large.recipe.model.name == "deeplabv3_resnet101"
    assert large.recipe.data.sample_shape == (3, 513, 513)
    small = chosen(*VOC, "--offline")
    assert small.recipe.model.name == "tiny_segmenter"
    assert small.recipe.data.sample_shape == (3, 64, 64)
    for found in (large, small):
        assert found.recipe.data.model_dump()["classes"] == 21
        assert found.model == "deeplabv3_resnet101"
        assert "offline twin of deeplabv3_resnet101 on voc" in found.title
        assert "This is the offline twin of deeplabv3_resnet101 on voc" in found.note
    assert "nothing here says what reading and decoding voc costs" in large.note
    assert "nothing here says how fast deeplabv3_resnet101 on voc trains" in small.note


def test_a_twin_of_images_with_one_class_each() -> None:
    found = chosen("--model", "{name: resnet, depth: 18, weights: imagenet}", "--data", "stl10", "--offline")
    assert found.recipe.data.sample_shape == (3, 96, 96)
    assert found.recipe.model.model_dump()["weights"] == "none"
    assert found.recipe.model.model_dump()["depth"] == 18


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "mlp"], "--model and --data go together"),
        (["--data", "voc"], "--model and --data go together"),
        (["--model", "mlp", "--data", "voc"], "one for each pixel: take model: deeplabv3_resnet101"),
        (["--model", "mlp", "--data", "digits", "--offline"], "data digits need no download"),
        (["--model", "deeplabv3_resnet", "--data", "voc"], "Did you mean deeplabv3_resnet101"),
        (["--model", "{name: ", "--data", "voc"], "is no noun of a recipe"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_mend(words: list[str], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        chosen(*words)
