from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from torchyard.recipe import Recipe
from torchyard.recipe.models import Mlp
from torchyard.recipe.optim import Sgd
from torchyard.spec import JobSpec


def test_a_bare_name_is_the_name_with_its_defaults() -> None:
    assert Recipe(model="mlp") == Recipe(model={"name": "mlp"}) == Recipe(model=Mlp())  # type: ignore[arg-type]


def test_options() -> None:
    recipe = Recipe.model_validate({"optim": {"name": "sgd", "lr": 0.1, "momentum": 0.5}})
    assert recipe.optim == Sgd(lr=0.1, momentum=0.5)


def test_it_survives_json() -> None:
    recipe = Recipe.model_validate({"model": {"name": "mlp", "hidden": [3]}, "schedule": {"name": "step", "size": 2}})
    assert Recipe.model_validate_json(recipe.model_dump_json()) == recipe


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"model": "mpl"}, "model", "choose digits_cnn or mlp. Did you mean mlp?"),
        ({"model": 5}, "model", "give a name (digits_cnn, mlp), or {name: digits_cnn, option: value}"),
        ({"model": {"hidden": [1]}}, "model", "its name is missing: add name: digits_cnn or mlp"),
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
        ({"epochs": 0}, "epochs", "greater than or equal to 1"),
    ],
)
def test_a_mistake_is_one_error_that_names_field_and_mend(given: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Recipe.model_validate(given)
    (error,) = caught.value.errors()
    assert ".".join(map(str, error["loc"])) == field
    assert message in error["msg"]


def test_the_json_schema_takes_both_forms() -> None:
    schema = jsonschema.Draft202012Validator(Recipe.model_json_schema())
    assert schema.is_valid({"model": "mlp", "optim": {"name": "sgd", "lr": 0.1}, "epochs": 3})
    assert not schema.is_valid({"model": "nonsense"})
    assert not schema.is_valid({"optim": {"name": "sgd", "rate": 0.1}})


def test_one_process_on_two_gpus_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"take resources\.gpus 1 or strategy: ddp"):
        JobSpec.model_validate({"recipe": {"strategy": "single"}, "resources": {"gpus": 2}})
