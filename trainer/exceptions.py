"""The trainer's errors; every message says the mend."""


class TrainerError(Exception):
    """Base of the trainer's errors."""


class RecipeError(TrainerError):
    """The recipe does not fit the data, the machine or the launch."""


class DownloadError(TrainerError):
    """Data or weights are not there, or not whole, on the file system of some rank."""


class PeerError(TrainerError):
    """Another rank no longer answers: it failed, was killed or hangs, and its log says more."""


class SpawnError(TrainerError):
    """A rank ended badly and took the others with it; `code` is what this command should exit with."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class BenchError(TrainerError):
    """A training of the comparison failed."""


class AverageError(TrainerError):
    """Checkpoints cannot be averaged: take those of one model."""
