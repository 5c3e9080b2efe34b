import sys
from typing import Any, get_args

import jsonschema
import pytest
from pydantic import ValidationError

from torchyard.recipe import Recipe
from torchyard.recipe.models import Mlp
from torchyard.recipe.optim import Sgd
from torchyard.recipe.strategies import SYNONYMS, Pipeline, StrategyNoun
from torchyard.spec import JobSpec


def test_a_bare_name_is_the_name_with_its_defaults() -> None:
    assert Recipe(model="mlp") == Recipe(model={"name": "mlp"}) == Recipe(model=Mlp())  # type: ignore[arg-type]


def test_options() -> None:
    recipe = Recipe.model_validate({"optim": {"name": "sgd", "lr": 0.1, "momentum": 0.5}})
    assert recipe.optim == Sgd(lr=0.1, momentum=0.5)


def test_a_target_is_not_imported_and_may_take_any_data() -> None:
    target = "nowhere.to:be.found"
    for kind in ("model", "data"):
        Recipe.model_validate({kind: {"name": "custom", "target": target, "options": {"width": 3, "deep": [{}]}}})
    assert "nowhere" not in sys.modules


def test_it_survives_json() -> None:
    recipe = Recipe.model_validate({"model": {"name": "mlp", "hidden": [3]}, "schedule": {"name": "step", "size": 2}})
    assert Recipe.model_validate_json(recipe.model_dump_json()) == recipe


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"model": "mpl"}, "model", "Did you mean mlp?"),
        ({"optim": 5}, "optim", "give a name (adam, adamw, sgd), or {name: adam, option: value}"),
        ({"optim": {"lr": 0.1}}, "optim", "its name is missing: add name: adam, adamw or sgd"),
        ({"optim": {"name": ["x"]}}, "optim", "is not known here: choose adam, adamw or sgd"),
        ({"model": {"name": "mlp", "hiden": [1]}}, "model.mlp.hiden", "not permitted"),
        ({"lr": 0.1}, "lr", "not permitted"),
        ({"schedule": "step"}, "schedule.step.size", "required"),
        ({"schedule": {"name": "multistep", "milestones": [3, 3]}}, "schedule.multistep.milestones", "must ascend"),
        ({"schedule": {"name": "cosine", "warmup": 5}}, "", "schedule.warmup (5 epochs) must be less than epochs"),
        ({"optim": {"name": "adam", "lr": 0}}, "optim.adam.lr", "greater than 0"),
        ({"optim": {"name": "adam", "lr": float("nan")}}, "optim.adam.lr", ""),
        ({"optim": {"name": "sgd", "momentum": 0, "nesterov": True}}, "optim.sgd", "needs a momentum"),
        ({"data": {"name": "synthetic", "shape": [10]}}, "", "but data.shape is [10]"),
        (
            {"data": "cifar10", "model": "alexnet"},
            "",
            "needs images of at least 63 by 63, but data.shape is [3, 32, 32]",
        ),
        (
            {"data": {"name": "mnist", "size": 64}, "model": "resnet"},
            "",
            "of 3 channels, but those of data mnist have 1",
        ),
        (
            {"data": "voc"},
            "",
            "answers one class for each sample, but data voc has one for each pixel: take model: deep",
        ),
        ({"model": "tiny_segmenter"}, "", "one class for each pixel, but data digits has one for each sample: take"),
        ({"data": "image_folder"}, "data.image_folder.root", "required"),
        (
            {"data": {"name": "mnist", "mean": [0.1, 0.2]}},
            "data.mnist",
            "mean has 2 values, but the images 1 channel(s)",
        ),
        ({"data": {"name": "mnist", "crop_scale": [1, 0.5]}}, "data.mnist", "least share must not be above"),
        ({"model": {"name": "custom", "target": "models.py"}}, "model.custom.target", "should match pattern"),
        ({"model": {"name": "custom", "target": "a:b;c"}}, "model.custom.target", "should match pattern"),
        (
            {"strategy": {"name": "parameter_server", "async": True}, "ema_decay": 0.9},
            "",
            "ema_decay needs workers with equal weights: leave it out, or strategy.async",
        ),
        ({"deterministic": True, "cudnn_benchmark": True}, "", "cudnn_benchmark chooses by time"),
        ({"compile": True, "strategy": "dp"}, "", "compile is not for strategy dp"),
        ({"compile": True, "activation_checkpointing": True}, "", "exclude each other: keep one of them"),
        ({"precision": "fp16", "strategy": "fsdp"}, "", "precision fp16 is not for strategy fsdp: take bf16"),
        (
            {"strategy": "pipeline", "model": "tiny_segmenter", "data": "synthetic_segmentation"},
            "",
            "pipeline cuts the model into layers, but model tiny_segmenter is no sequence of them: take strategy: ddp",
        ),
        (
            {"strategy": "model_parallel", "model": "deeplabv3_resnet101", "data": "voc"},
            "",
            "model_parallel cuts the model into layers, but model deeplabv3_resnet101 is no sequence",
        ),
        ({"strategy": "pipeline", "batch_size": 10}, "", "strategy.microbatches (4) must divide batch_size (10)"),
        (
            {"strategy": "pipeline", "global_batch_size": 12, "accumulate": 2},
            "",
            "strategy.microbatches (4) must divide global_batch_size / accumulate (6)",
        ),
        ({"global_batch_size": 10, "accumulate": 4}, "", "accumulate (4) must divide global_batch_size (10)"),
        ({"epochs": 0}, "epochs", "greater than or equal to 1"),
        ({"strategy": {"name": "dp", "dim": 1}}, "strategy.dp", "dim is not taken: samples lie along the first"),
        (
            {"strategy": {"name": "dp", "output_device": 1}},
            "strategy.dp",
            "output_device is not taken: outputs are gathered on the first device, where the targets are",
        ),
        (
            {"strategy": {"name": "ddp", "device_ids": [0, 1]}},
            "strategy.ddp",
            "device_ids is not taken: one process has one device, that of LOCAL_RANK",
        ),
    ],
)
def test_a_mistake_is_one_error_that_names_field_and_mend(given: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Recipe.model_validate(given)
    (error,) = caught.value.errors()
    assert ".".join(map(str, error["loc"])) == field
    assert message in error["msg"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("dataparallel", "dp"),
        ("data_parallel", "dp"),
        ("DataParallel", "dp"),
        ("distributed", "ddp"),
        ("DistributedDataParallel", "ddp"),
        ("DDP", "ddp"),
        ("allreduce", "ddp"),
        ("horovod", "ddp"),
        ("ps", "parameter_server"),
        ("zero", "fsdp"),
        ("ZeRO-3", "fsdp"),
        ("FullyShardedDataParallel", "fsdp"),
        ("tp", "tensor_parallel"),
        ("pp", "pipeline"),
        ("pipline", "pipeline"),
        ("modelparallel", "model_parallel"),
    ],
)
def test_a_strategy_is_suggested_by_the_names_that_others_give_it(name: str, meant: str) -> None:
    with pytest.raises(ValidationError, match=rf"Did you mean {meant}\?"):
        Recipe.model_validate({"strategy": name})


def test_synonyms_lead_to_strategies() -> None:
    strategies = get_args(get_args(StrategyNoun)[0])
    assert set(SYNONYMS.values()) <= {each.model_fields["name"].default for each in strategies}


@pytest.mark.parametrize(
    ("strategy", "gpus", "message"),
    [
        ({"name": "fsdp", "tensor_parallel": 2}, 3, "strategy.tensor_parallel is 2, but 3 processes do not divide"),
        ("tensor_parallel", 1, "needs at least two ranks: take strategy: single for one, or resources.gpus 2"),
        ({"name": "pipeline", "schedule": "1f1b"}, 5, "needs a microbatch for each of 5 stages: raise strategy.micro"),
        (
            {"name": "pipeline", "schedule": "interleaved", "microbatches": 5},
            2,
            "take strategy.microbatches 6",
        ),
    ],
)
def test_ranks_that_cannot_train_are_refused_at_submission(strategy: Any, gpus: int, message: str) -> None:
    recipe = {"strategy": strategy, "batch_size": 60}
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate({"recipe": recipe, "resources": {"gpus": gpus}})
    assert message in str(caught.value)


@pytest.mark.parametrize(("schedule", "microbatches"), [("gpipe", 1), ("1f1b", 2), ("interleaved", 10)])
def test_schedules_that_come_out_even(schedule: str, microbatches: int) -> None:
    Pipeline.model_validate({"schedule": schedule, "microbatches": microbatches}).check_ranks(2)


def test_the_json_schema_takes_both_forms() -> None:
    schema = jsonschema.Draft202012Validator(Recipe.model_json_schema())
    assert schema.is_valid({"model": "mlp", "optim": {"name": "sgd", "lr": 0.1}, "epochs": 3})
    assert not schema.is_valid({"model": "nonsense"})
    assert not schema.is_valid({"optim": {"name": "sgd", "rate": 0.1}})


@pytest.mark.parametrize(
    ("recipe", "gpus", "expected"),
    [
        ({"batch_size": 32, "accumulate": 2}, 8, 512),
        ({"batch_size": 32, "strategy": "single"}, 1, 32),
        ({"batch_size": 3, "strategy": {"name": "dp", "first_device_batch": 2}, "accumulate": 2}, 3, 16),
        ({"batch_size": 10, "strategy": {"name": "parameter_server", "servers": 2}}, 3, 30),
        ({"batch_size": 8, "strategy": "pipeline"}, 4, 8),
        ({"batch_size": 8, "strategy": "tensor_parallel"}, 4, 8),
        ({"batch_size": 8, "strategy": {"name": "fsdp", "tensor_parallel": 2}}, 4, 16),
        ({"batch_size": 8, "strategy": {"name": "model_parallel", "data_parallel": 2}}, 4, 16),
        ({"global_batch_size": 96}, 3, 96),
    ],
)
def test_the_effective_batch_is_known_without_a_run(recipe: dict[str, Any], gpus: int, expected: int) -> None:
    spec = JobSpec.model_validate({"recipe": recipe, "resources": {"gpus": gpus}})
    assert spec.effective_batch == expected


def test_a_command_has_an_effective_batch_of_its_own() -> None:
    assert JobSpec.model_validate({"command": ["train.py"]}).effective_batch is None


def test_one_process_on_two_gpus_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"take resources\.gpus 1 or strategy: ddp"):
        JobSpec.model_validate({"recipe": {"strategy": "single"}, "resources": {"gpus": 2}})
