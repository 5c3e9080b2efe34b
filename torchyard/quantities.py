"""Durations and sizes as people write them: ``4h``, ``10m``, ``16GiB``."""

import math
import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

from torchyard.translatable import TranslatableText, of_error

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
BYTES = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}

#: Longer than anything here lives; larger numbers would leave what dates and databases can hold.
MAX_DURATION = 100 * 365 * SECONDS["d"]
MAX_SIZE = 2**60

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


def parse_duration(value: object) -> int:
    """Seconds in ``90``, ``"90s"``, ``"4h"`` or ``"1h30m"``.

    Raises ValueError with the accepted forms when the value is none of them, is negative or longer than a century.
    """
    seconds = _number(value)
    if seconds is None:
        text = str(value).strip().lower()
        if not _DURATION.fullmatch(text):
            raise ValueError(
                TranslatableText(
                    "duration",
                    "{value} is not a duration: write seconds, or 90s, 10m, 4h, 2d, 1h30m",
                    value=_shown(value),
                )
            )
        seconds = sum(float(n) * SECONDS[unit] for n, unit in _DURATION_PART.findall(text))
    if not 0 <= seconds <= MAX_DURATION:
        raise ValueError(
            TranslatableText(
                "duration-range", "{value} is out of range: a duration is 0 seconds to 36500d", value=_shown(value)
            )
        )
    return round(seconds)


def parse_size(value: object) -> int:
    """Bytes in ``1024``, ``"512MiB"`` or ``"16GB"``; raises ValueError with the accepted forms."""
    size = _number(value)
    if size is None:
        match = _SIZE.fullmatch(str(value).strip().lower())
        if not match or match.group(2) not in BYTES:
            raise ValueError(
                TranslatableText(
                    "size", "{value} is not a size: write bytes, or 512MiB, 16GiB, 16GB", value=_shown(value)
                )
            )
        size = float(match.group(1)) * BYTES[match.group(2)]
    if not 0 <= size <= MAX_SIZE:
        raise ValueError(
            TranslatableText(
                "size-range", "{value} is out of range: a size is 0 bytes to 1048576TiB", value=_shown(value)
            )
        )
    return round(size)


def _number(value: object) -> float | None:
    """The value if it is a plain whole number, also as text; what is larger than anything here is infinite."""
    if isinstance(value, float) and value.is_integer():  # as `timedelta.total_seconds` has it
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value <= MAX_SIZE else math.inf
    return float(value) if isinstance(value, str) and value.strip().isdecimal() else None


def _shown(value: object) -> str:
    """The value as a message repeats it. Python refuses to write out integers beyond 4300 digits."""
    if isinstance(value, int) and abs(value) > MAX_SIZE:
        return "the number"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def format_size(size: int) -> str:
    """``1536`` as ``1.5 KiB``."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def format_duration(seconds: float) -> str:
    """``5400`` as ``1h30m``; under ten seconds one decimal is kept."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    total = round(seconds)
    parts = []
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        amount, total = divmod(total, length)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts[:2])


def _json_schema(examples: list[str], meaning: str, unit: Literal["seconds", "bytes"] = "seconds") -> WithJsonSchema:
    return WithJsonSchema(
        {
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}],
            "examples": examples,
            "description": meaning,
            "x-unit": unit,
        }
    )


def parse_interval(value: object) -> int | Literal["never"]:
    """Seconds as in `parse_duration`, or ``never``."""
    if value == "never":
        return "never"
    try:
        return parse_duration(value)
    except ValueError as error:
        raise ValueError(TranslatableText("or-never", "{mistake}, or never", mistake=of_error(error))) from None


#: What to write, and what stands for it in JSON: seconds, or never.
Interval = Annotated[
    int | Literal["never"],
    BeforeValidator(parse_interval),
    _json_schema(["10m", "never"], "seconds, or 10m, 4h, never"),
]
Duration = Annotated[int, BeforeValidator(parse_duration), _json_schema(["10m", "4h"], "seconds, or 10m, 4h, 2d")]
Size = Annotated[int, BeforeValidator(parse_size), _json_schema(["16GiB"], "bytes, or 512MiB, 16GiB, 16GB", "bytes")]
