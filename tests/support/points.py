"""Points of a series of metrics."""

import math

import numpy as np

from service.telemetry.series import Points


def points(steps: list[int], values: list[float]) -> Points:
    """Points of a series, one a second; NaN is the special value of code 1."""
    special = [1 if math.isnan(value) else 0 for value in values]
    return Points(
        np.array(steps, np.int64),
        np.array([1_000_000 * step for step in steps], np.int64),
        np.array([0.0 if math.isnan(value) else value for value in values]),
        np.array(special, np.int64),
    )
