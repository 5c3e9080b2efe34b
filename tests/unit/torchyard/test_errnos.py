"""Errors that mean a full disk, wherever they are asked for."""

from torchyard.errnos import NO_SPACE
from worker.shim import files


def test_the_shim_which_imports_nothing_of_ours_knows_the_same() -> None:
    assert files.NO_SPACE == NO_SPACE
