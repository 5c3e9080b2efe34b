"""Counters in a line of a log: the bars of tqdm, Keras and rich, ``epoch 3/90``, ``step 100 of 5000``."""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

#: A longer line is no progress.
MAX_LINE: Final = 2000
#: Of a bar's label: the work before training, which says nothing of the run's length.
_PREPARATION: Final = re.compile(
    r"^(map|filter|flatten|download|generating|loading|extracting|fetching|saving|upload|sanity|resolving|tokeniz|"
    r"materializing|pushing|creating|casting)",
    re.IGNORECASE,
)
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SUFFIX: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
#: A count of more digits is beyond all floats, or near it.
_COUNT: Final = r"\d{1,18}(?:\.\d+)?[kMGT]?"
#: ``label:  45%|####5     | 45/100 [00:10<00:12,  4.5it/s]``
_TQDM: Final = re.compile(rf"^(.*?)\s*\d{{1,3}}%\|[^|]*\|\s*({_COUNT})/({_COUNT})\s*\[([^\]]*)")
#: ``45/100 ━━━━━━━━━━ 1s 5ms/step - loss: 0.3`` and ``45/100 [====>.....] - ETA: 1s``; a line an epoch, at its end:
#: ``100/100 - 2s - 20ms/step - loss: 0.3``
_KERAS: Final = re.compile(r"^\s*(\d+)/(\d+)\s+(?:━|\[[=>.]|- \d+s - \d+[mu]?s/(?:step|epoch))")
#: ``Training ━━━━━━━━ 45/100 0:00:10`` and ``Training ━━━━━╸━━━  45% 0:00:10``
_RICH: Final = re.compile(r"^(.*?)\s*[━╸╺]{5}[━╸╺\s]*(?:\s(\d+)/(\d+)|(\d{1,3})%)")
_OF: Final = r"\s*(?:/|of|out of)\s*"
#: ``5000`` and ``5,000``.
_WHOLE: Final = r"\d{1,3}(?:,\d{3})+|\d+"
#: What follows is no more of the number.
_END: Final = r"(?![\d.,]*\d)"
_EPOCH: Final = re.compile(
    rf"\bepochs?\b\s*[:#=]?\s*[\[(]?\s*({_WHOLE})(?:{_OF}({_WHOLE}))?{_END}(?![\d.]*%)", re.IGNORECASE
)
_STEP: Final = re.compile(
    r"\b(global[_ ]?step|step|iter|iteration|it|batch|update)s?\b\s*[:#=]?\s*[\[(]?\s*"
    rf"({_WHOLE}){_OF}({_WHOLE}){_END}",
    re.IGNORECASE,
)
#: Beside an epoch: ``Epoch: [0][  10/5005]``, ``Train Epoch: 1 [640/60000 (1%)]``
_BRACKET: Final = re.compile(r"\[\s*(\d+)/(\d+)\b")


class CounterKind(Enum):
    """Kinds of counters."""

    #: Of the whole run, wherever its number and total stand.
    EPOCH = auto()
    #: Of a loop, which may be the run or one of its epochs.
    LOOP = auto()


class Counter(NamedTuple):
    """A counter with its place, which may be past its total: then that is none. `total` is None for an epoch without
    one, `label` tells loops apart.
    """

    kind: CounterKind
    label: str
    place: int
    total: int | None


def counters(line: str) -> list[Counter]:
    """Return the counters in a line: the epoch first, then at most one loop."""
    if len(line) > MAX_LINE or not any(map(str.isdigit, line)):
        return []
    text = _ANSI.sub("", line)
    epoch = next(_epochs(text), None)
    loop = next(_loops(text, bracket=epoch is not None), None)
    return [each for each in (epoch, loop) if each is not None]


def _epochs(text: str) -> Iterator[Counter]:
    for found in _EPOCH.finditer(text):
        total = _whole(found[2]) if found[2] else None
        if total != 0:
            yield Counter(CounterKind.EPOCH, "epoch", _whole(found[1]), total)


def _loops(text: str, *, bracket: bool) -> Iterator[Counter]:
    if found := _TQDM.match(text):
        # An outer bar may be named so: "Epoch:  30%|..| 3/10" counts epochs, "Epoch 3:  45%|..|" batches of one.
        if _PREPARATION.match(found[1]) is None and "B/s" not in found[4]:
            yield _loop(found[1], _number(found[2]), _number(found[3]))
        return
    if found := _KERAS.match(text):
        yield _loop("", int(found[1]), int(found[2]))
    elif (found := _RICH.match(text)) and _PREPARATION.match(found[1]) is None:
        yield _loop(found[1], int(found[2] or found[4]), int(found[3] or 100))
    elif found := _STEP.search(text):
        yield _loop(found[1], _whole(found[2]), _whole(found[3]))
    elif bracket and (found := _BRACKET.search(text)):
        yield _loop("", int(found[1]), int(found[2]))


def _loop(label: str, place: int, total: int) -> Counter:
    """Return the counter of a loop; numbers in its label change while it is the same loop."""
    return Counter(CounterKind.LOOP, re.sub(r"[\d.]+", "", label).strip(" :|").lower(), place, total)


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _number(text: str) -> int:
    unit = text[-1] if text[-1] in _SUFFIX else ""
    return round(float(text.removesuffix(unit)) * _SUFFIX[unit])
