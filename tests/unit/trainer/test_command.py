from pathlib import Path

import pytest

from torchyard.recipe.models import Mlp
from trainer.command import _parser, _place, read_recipe
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


def given(*words: str) -> dict[str, str]:
    return _place(_parser().parse_args(["recipe.yaml", *words]))


def test_a_rank_by_hand_is_told_what_a_launcher_would() -> None:
    assert given() == {}
    assert given("--rank", "1", "--world-size", "2", "--rendezvous", "tcp://node0:29400") == {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "node0",
        "MASTER_PORT": "29400",
    }
    shared = given("--rank=3", "--world-size=4", "--local-rank=1", "--local-world-size=2", "--rendezvous=file:///x")
    assert shared == {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}


@pytest.mark.parametrize("words", [["--rank=1"], ["--rank=2", "--world-size=2"], ["--local-rank=0"]])
def test_half_of_a_place_is_refused(words: list[str]) -> None:
    with pytest.raises(RecipeError, match=r"go together|must be at least 0"):
        given(*words)
