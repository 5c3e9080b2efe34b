"""Characters of a name that steer a terminal or are not seen, so that a name seems to be another."""

import re
from typing import Final

from torchyard.translatable import TranslatableText

#: As a class of a regular expression: C0 and C1 controls but tab and newline, line and paragraph separators, and what
#: sets the direction of writing.
STEERING: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_IN_NAME = re.compile(rf"[\t\n{STEERING}]")


def check_name(name: str) -> str:
    """Return the name; ValueError with the first character that does not belong in one."""
    found = _IN_NAME.search(name)
    if found is not None:
        raise ValueError(
            TranslatableText(
                "control-character",
                "contains the control character U+{character}: leave it out",
                character=f"{ord(found[0]):04X}",
            )
        )
    return name
