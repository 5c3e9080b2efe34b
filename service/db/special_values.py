"""Codes of the values that databases cannot hold as numbers: columns `special` and `last_special`."""

from typing import Final

from torchyard.numbers import NON_FINITE, NonFinite

#: By code; 0 stands for a number.
SPECIAL_VALUES: Final[tuple[NonFinite | None, ...]] = (None, *NON_FINITE)
CODES: Final[dict[str, int]] = {word: code for code, word in enumerate(NON_FINITE, 1)}
