"""A data set from the job's own code."""

from torchyard.recipe.data import CustomData
from trainer import custom
from trainer.data.sets import DataSets
from trainer.exceptions import RecipeError


def custom_data(options: CustomData) -> DataSets:
    """Return the target's answer, if it is `DataSets`; raises RecipeError if not."""
    answer = custom.made("data", options.target, options.options)
    if not isinstance(answer, DataSets):
        raise RecipeError(
            f"data.target {options.target} answered {type(answer).__name__}: let it return trainer.data.DataSets("
            "train=…, validation=…, shape=Shape(sample=…, classes=…))"
        )
    return answer
