import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from torchyard.recipe import Recipe
from trainer.data import DATA, DataSets, Shape
from trainer.exceptions import RecipeError
from trainer.models import MODELS

CODE = """
import torch
from trainer.data import DataSets, Shape, TensorData

class Net(torch.nn.Sequential):
    def __init__(self, width=3):
        super().__init__(torch.nn.Linear(4, width), torch.nn.Linear(width, 2))

    @classmethod
    def narrow(cls):
        return cls(1)

def points(samples):
    from mycode import later
    data = TensorData(torch.ones(samples, 4), torch.zeros(samples, dtype=torch.long))
    return DataSets(train=data, validation=data, shape=Shape(sample=(4,), classes=2))

def wrong():
    return 5

number = 5
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A job's code folder as the working folder, which is not on the path."""
    package = tmp_path / "mycode"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "parts.py").write_text(CODE)
    (package / "later.py").touch()
    (package / "broken.py").write_text("import nowhere_to_be_found")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "mycode"]:
        del sys.modules[name]


def model(target: str, **options: Any) -> torch.nn.Module:
    given = {"model": {"name": "custom", "target": target, "options": options}}
    return MODELS["custom"](Recipe.model_validate(given).model, Shape(sample=(4,), classes=2))


def data(target: str, **options: Any) -> DataSets:
    given = {"data": {"name": "custom", "target": target, "options": options}}
    return DATA["custom"](Recipe.model_validate(given).data)


def test_model_and_data_of_the_jobs_own_code(code: Path) -> None:
    assert model("mycode.parts:Net", width=5)(torch.ones(1, 4)).shape == (1, 2)
    assert sum(each.numel() for each in model("mycode.parts:Net.narrow").parameters()) == 9
    sets = data("mycode.parts:points", samples=7)  # imports more of it when it is called
    assert (len(sets.train), sets.shape.sample) == (7, (4,))  # type: ignore[arg-type]
    assert sys.path[-1] == str(code)  # behind everything else


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("mycode.absent:make", {}, r"model\.target mycode\.absent:make cannot be imported: No module named"),
        ("mycode.broken:make", {}, "No module named 'nowhere_to_be_found'"),
        ("mycode.parts:absent", {}, "cannot be imported: .* no attribute 'absent': give module:function as seen from"),
        ("mycode.parts:number", {}, "is no function or class, but int"),
        ("mycode.parts:wrong", {}, r"answered int: let it return an nn\.Module"),
        ("mycode.parts:Net", {"wide": 3}, r"does not take model\.options: .*'wide'"),
        ("torch:ones", {"size": [1]}, "answered Tensor: let it return"),  # tells nobody what it takes
    ],
)
def test_a_mistake_is_named_with_the_mend(code: Path, target: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        model(target, **options)


def test_data_must_be_data(code: Path) -> None:
    with pytest.raises(RecipeError, match=r"answered int: let it return trainer\.data\.DataSets\("):
        data("mycode.parts:wrong")


def test_nothing_is_imported_to_validate(code: Path) -> None:
    Recipe.model_validate({"model": {"name": "custom", "target": "mycode.parts:Net"}})
    assert "mycode.parts" not in sys.modules
