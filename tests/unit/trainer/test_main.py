from pathlib import Path

import pytest

from torchyard.recipe.models import Mlp
from trainer.__main__ import read_recipe
from trainer.exceptions import RecipeError


@pytest.mark.parametrize("text", ['{"model": "mlp"}', "model: mlp", "name: job\nrecipe: {model: mlp}"])
def test_a_recipe_or_a_spec_as_json_or_yaml(tmp_path: Path, text: str) -> None:
    (tmp_path / "recipe").write_text(text)
    assert read_recipe(tmp_path / "recipe").model == Mlp()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[1]", "is no recipe"),
        ("model: mpl\nepochs: 0", "model: .*Did you mean mlp.*\nepochs: "),
    ],
)
def test_mistakes_are_listed(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "recipe").write_text(text)
    with pytest.raises(RecipeError, match=message):
        read_recipe(tmp_path / "recipe")
    with pytest.raises(RecipeError, match="cannot be read"):
        read_recipe(tmp_path / "absent")


def test_the_demo_is_a_valid_spec() -> None:
    assert read_recipe(Path(__file__).parents[3] / "examples/digits.yaml").epochs > 1
