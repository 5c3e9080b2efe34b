"""Columns of numbers that grow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


def grown(columns: NDArray[Any], needed: int) -> NDArray[Any]:
    """Return the columns with space for at least `needed` rows; the same array if it is long enough."""
    if needed <= columns.shape[1]:
        return columns
    wider = np.zeros((columns.shape[0], 2 * needed), dtype=columns.dtype)
    wider[:, : columns.shape[1]] = columns
    return wider
