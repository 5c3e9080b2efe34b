"""Limits of numbers and names that every database holds, and how values travel that JSON has no number for."""

from typing import Final, Literal, get_args

#: Integers of 64 bits, as databases hold them.
INT64: Final = range(-(2**63), 2**63)
#: Characters of a metric's name.
MAX_METRIC_NAME: Final = 255

NonFinite = Literal["nan", "inf", "-inf"]
NON_FINITE: Final[tuple[NonFinite, ...]] = get_args(NonFinite)
#: By the constants that Python's `json` writes.
JSON_CONSTANTS: Final[dict[str, NonFinite]] = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
