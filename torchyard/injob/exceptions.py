"""Exceptions of the in-job part."""

from __future__ import annotations


class InJobError(RuntimeError):
    """Base of everything that the in-job part raises."""


class CheckpointError(InJobError):
    """A checkpoint could not be written, committed or found."""


class EmptyCheckpointError(CheckpointError):
    """Nothing was written into the checkpoint folder: save your state inside the `with` block."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


class NoProcessGroupError(CheckpointError):
    """Several ranks, but torch.distributed is not initialised: take checkpoints between init and destroy."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


class OtherRankError(CheckpointError):
    """Another rank failed in this checkpoint, so it was not committed: see that rank's log."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


class SeparateDisksError(CheckpointError):
    """Ranks write a sharded checkpoint into one folder, but not all of them see that of rank 0: start them in a folder
    that they share, or through the queue, which brings the files of several nodes together.
    """

    def __init__(self) -> None:
        super().__init__(" ".join((type(self).__doc__ or "").split()))


class AttachError(InJobError):
    """An object that was given to `attach` cannot be saved or loaded."""


class ResumeError(CheckpointError):
    """A checkpoint does not fit the training that is to continue from it."""
