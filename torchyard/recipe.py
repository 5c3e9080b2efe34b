"""The recipe: the built-in trainer's five nouns and the run's own keys, without torch.

The schema lives here so that the service can refuse a bad recipe before anything is launched; the trainer builds the
real objects from the same data.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Recipe(BaseModel):
    """One training run."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: Literal["digits_cnn"] = "digits_cnn"
    data: Literal["digits"] = "digits"
    epochs: Annotated[int, Field(ge=1)] = 5
    batch_size: Annotated[int, Field(ge=1)] = 64
