"""Arithmetic of metric series: which points still count, fewer points with the same look, and where a reader is."""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.db.special_values import SPECIAL_VALUES
from torchyard import api
from torchyard.numbers import INT64
from torchyard.translatable import TranslatableText

NOTHING_COUNTS = INT64.start - 1
#: Refusals of a cursor, of metrics and of samples: with a range, and of one that nobody was given.
CURSOR_WITH_RANGE = TranslatableText(
    "cursor-with-range", "goes on from the end of everything: leave it out with a range"
)
NO_CURSOR = TranslatableText("no-cursor", "must be the cursor of an earlier answer: leave it out to get everything")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Points:
    """Points of one series, in columns; `values` is 0 where `special` is not."""

    steps: Integers
    times_us: Integers
    values: Floats
    special: Integers

    def __len__(self) -> int:
        return len(self.steps)

    def take(self, chosen: NDArray[np.intp]) -> "Points":
        """Return the points at the places."""
        return Points(self.steps[chosen], self.times_us[chosen], self.values[chosen], self.special[chosen])

    def until(self, last_step: int | None) -> "Points":
        """Return the points up to a step; None: all of them."""
        if last_step is None:
            return self
        return self.take(
            np.flatnonzero(self.steps <= last_step if last_step >= INT64.start else self.steps < self.steps)
        )

    def rows(self) -> list[tuple[int, float, api.Number]]:
        """``(step, unix time in seconds, value)``, with words for what JSON cannot say."""
        steps, times, values = self.steps.tolist(), (self.times_us / 1e6).tolist(), self.values.tolist()
        if self.special.any():
            values = [SPECIAL_VALUES[code] or value for value, code in zip(values, self.special.tolist(), strict=True)]
        return list(zip(steps, times, values, strict=True))


def int64(number: float, rounded: Callable[[float], int]) -> int:
    """Return the number as whole as `rounded` makes it; one beyond what the database holds as the nearest that it does.

    An infinite one is one of those: seconds may have no number of microseconds.
    """
    return rounded(min(max(number, INT64.start), INT64.stop - 1))


def join(parts: Iterable[Points]) -> Points:
    """Join the points of all parts in order of steps; where steps are equal, in the order of the parts."""
    columns = [(part.steps, part.times_us, part.values, part.special) for part in parts]
    joined = Points(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    return joined.take(np.argsort(joined.steps, kind="stable"))


def last_steps(resumed_from: Mapping[int, int | None]) -> dict[int, int | None]:
    """Return the steps up to which points count, by the number of the attempt; None: all of them.

    `resumed_from` has the step at which each attempt that reported began (None: at the start). What an attempt did
    beyond the step at which a later one resumed is done again by the later one.
    """
    limits: dict[int, int | None] = {}
    limit: int | None = None
    for number in sorted(resumed_from, reverse=True):
        limits[number] = limit
        step = resumed_from[number]
        began = NOTHING_COUNTS if step is None else step
        limit = began if limit is None else min(limit, began)
    return limits


def thin(points: Points, max_points: int) -> Points:
    """At most `max_points` (10 or more): of each stretch the smallest, the largest and the first special value, so that
    no peak and no NaN is lost; and both ends.
    """
    count = len(points)
    if count <= max_points:
        return points
    special = points.special != 0
    has_special = bool(special.any())
    stretches = (max_points - 2) // (3 if has_special else 2)
    edges = np.linspace(0, count, stretches + 1).astype(np.intp)
    chosen = [np.array([0, count - 1], dtype=np.intp)]
    chosen.append(_first_of_each(edges, _extreme(np.where(special, np.inf, points.values), edges, np.minimum)))
    chosen.append(_first_of_each(edges, _extreme(np.where(special, -np.inf, points.values), edges, np.maximum)))
    if has_special:
        chosen.append(_first_of_each(edges, special))
    return points.take(np.unique(np.concatenate(chosen)))


def _extreme(values: Floats, edges: NDArray[np.intp], ufunc: np.ufunc) -> NDArray[np.bool_]:
    extremes = ufunc.reduceat(values, edges[:-1])
    same: NDArray[np.bool_] = np.equal(values, np.repeat(extremes, np.diff(edges)))
    return same


def _first_of_each(edges: NDArray[np.intp], marked: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the first marked place in each stretch that has one."""
    places = np.flatnonzero(marked)
    stretch = np.searchsorted(edges, places, side="right")
    return places[np.unique(stretch, return_index=True)[1]]


@dataclass(frozen=True)
class MetricsCursor:
    """Position of a reader: the newest attempt that it knows, and of each stream the last line it has.

    A stream is named by the smallest id among its series. As text it is a few bytes per stream, since it travels in
    URLs.
    """

    attempt: int
    marks: Mapping[int, int]

    def __str__(self) -> str:
        numbers = [self.attempt]
        for stream, seq in sorted(self.marks.items()):
            numbers += [stream, seq + 1]
        packed = b"".join(map(_pack, numbers))
        return base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> "MetricsCursor":
        """Read a cursor; `ValueError` for anything that `str` has not made."""
        try:
            packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, UnicodeEncodeError) as error:
            raise ValueError(text) from error
        attempt, *rest = list(_unpack(packed)) or [0]
        if len(rest) % 2 or max([attempt, *rest]) > INT64.stop:
            raise ValueError(text)
        return cls(attempt, {stream: seq - 1 for stream, seq in zip(rest[::2], rest[1::2], strict=True)})


def _pack(number: int) -> bytes:
    packed = bytearray()
    while number > 127:
        packed.append(number & 127 | 128)
        number >>= 7
    packed.append(number)
    return bytes(packed)


def _unpack(packed: bytes) -> Iterable[int]:
    number = shift = 0
    for byte in packed:
        number |= (byte & 127) << shift
        shift += 7
        if shift > 63 + 7:
            raise ValueError(packed)
        if byte < 128:
            yield number
            number = shift = 0
    if shift:
        raise ValueError(packed)
