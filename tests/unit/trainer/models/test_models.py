import pytest
import torch

from torchyard.recipe.models import DigitsCnn, Mlp
from trainer.data import Shape
from trainer.models import MODELS


@pytest.mark.parametrize(
    ("options", "sample"),
    [(DigitsCnn(), (1, 8, 8)), (DigitsCnn(channels=3), (3, 9, 5)), (Mlp(), (1, 28, 28)), (Mlp(hidden=()), (17,))],
)
def test_input_and_output_widths_follow_the_data(options: DigitsCnn | Mlp, sample: tuple[int, ...]) -> None:
    model = MODELS[options.name](options, Shape(sample=sample, classes=7))
    assert model(torch.zeros(2, *sample)).shape == (2, 7)
