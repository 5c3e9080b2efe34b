"""A model from the job's own code."""

from torch import nn

from torchyard.recipe.models import CustomModel
from trainer import custom
from trainer.data import Shape
from trainer.exceptions import RecipeError


def custom_model(options: CustomModel, shape: Shape) -> nn.Module:  # noqa: ARG001 (all models are made alike)
    """Return the target's answer, if it is a module; raises RecipeError if not."""
    model = custom.made("model", options.target, options.options)
    if not isinstance(model, nn.Module):
        raise RecipeError(
            f"model.target {options.target} answered {type(model).__name__}: let it return an nn.Module, or name the "
            "module's class"
        )
    return model
