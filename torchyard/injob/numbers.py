"""Numbers as they come (floats, ints, numpy scalars, tensors of any torch) and as they travel."""

from __future__ import annotations

import math

TYPE_CHECKING = False  # see torchyard/__init__.py
if TYPE_CHECKING:
    from typing import Any

_NON_FINITE = {math.inf: "inf", -math.inf: "-inf"}


def as_float(value: Any) -> float | None:
    """The value of a number or of anything with one element and an `item()`; None if it is neither."""
    item = getattr(value, "item", None)
    try:
        return float(value if item is None else item())
    except (ArithmeticError, RuntimeError, TypeError, ValueError):
        return None


def as_json(value: float) -> float | str:
    """JSON has no NaN and no infinity: they travel as ``"nan"``, ``"inf"`` and ``"-inf"``."""
    if math.isfinite(value):
        return value
    return _NON_FINITE.get(value, "nan")


def on_accelerator(value: Any) -> bool:
    """Return whether reading the value would wait for a GPU."""
    return getattr(getattr(value, "device", None), "type", "cpu") != "cpu"
