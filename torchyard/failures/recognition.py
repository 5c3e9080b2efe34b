"""Recognition of failures that the table knows, their blame, and advice on them.

The worker recognises them by their words, where the logs are; the service words the advice and decides by the blame
whether the job starts again.
"""

from dataclasses import dataclass
from typing import Final

from torchyard.failures.fingerprints import FINGERPRINTS, Blame

#: Characters of a line that are looked at: no log may keep the worker busy.
MAX_LINE: Final = 1000
_BY_NAME = {each.name: each for each in FINGERPRINTS}


@dataclass(frozen=True, kw_only=True)
class RecognisedFailure:
    """A failure, with what its words name: a module, a file."""

    name: str
    subject: str | None = None


def recognise(words: str) -> RecognisedFailure | None:
    """The failure that these last words tell of, if it is known."""
    words = "\n".join(line[:MAX_LINE] for line in words.split("\n"))
    best: tuple[int, RecognisedFailure] | None = None
    for each in FINGERPRINTS:
        for match in each.pattern.finditer(words) if each.pattern else ():
            if best is None or match.start() > best[0]:
                subject = match[1] if match.re.groups else None
                best = match.start(), RecognisedFailure(name=each.name, subject=subject)
    return best[1] if best else None


def of_signal(number: int) -> str | None:
    """The failure that a signal alone tells of, if it is known."""
    return next((each.name for each in FINGERPRINTS if each.signal == number), None)


def blame(name: str | None) -> Blame:
    """Return whose fault a failure is; one that is not known here is nobody's."""
    known = _BY_NAME.get(name or "")
    return known.blame if known else Blame.UNCLEAR


def advice(name: str | None, subject: str | None = None) -> str | None:
    """Advice on a failure; None for one that is not known here."""
    known = _BY_NAME.get(name or "")
    return known.advice.format(subject or known.unnamed) if known else None
