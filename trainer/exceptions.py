"""What the trainer raises; every message says the mend."""


class TrainerError(Exception):
    """Base of the trainer's errors."""


class RecipeError(TrainerError):
    """The recipe does not fit the data, the machine or the launch."""


class ResumeError(TrainerError):
    """The checkpoint does not fit this recipe: resume with the recipe that wrote it, or start a new job."""
