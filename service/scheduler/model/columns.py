"""Columns of numbers that grow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


def grown(columns: NDArray[Any], needed: int) -> NDArray[Any]:
    """The same with room for at least so many rows: themselves if they have it."""
    if needed <= columns.shape[1]:
        return columns
    wider = np.zeros((columns.shape[0], 2 * needed), dtype=columns.dtype)
    wider[:, : columns.shape[1]] = columns
    return wider
