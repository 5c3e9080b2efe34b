"""Exceptions of the in-job part."""

from __future__ import annotations

from torchyard.injob.reasons import CheckpointReason


class InJobError(RuntimeError):
    """Base of everything that the in-job part raises."""


class CheckpointError(InJobError):
    """A checkpoint could not be written, committed or found."""


class EmptyCheckpointError(CheckpointError):
    """Nothing was written into the checkpoint folder."""

    def __init__(self) -> None:
        super().__init__(CheckpointReason("empty"))


class NoProcessGroupError(CheckpointError):
    """Several ranks, but torch.distributed is not initialised."""

    def __init__(self) -> None:
        super().__init__(CheckpointReason("no-group"))


class OtherRankError(CheckpointError):
    """Another rank failed in this checkpoint, so it was not committed."""

    def __init__(self) -> None:
        super().__init__(CheckpointReason("other-rank"))


class SeparateDisksError(CheckpointError):
    """Ranks write a sharded checkpoint into one folder, but not all of them see that of rank 0."""

    def __init__(self) -> None:
        super().__init__(CheckpointReason("separate-disks"))


class AttachError(InJobError):
    """An object that was given to `attach` cannot be saved or loaded."""


class ResumeError(CheckpointError):
    """A checkpoint does not fit the training that is to continue from it."""
