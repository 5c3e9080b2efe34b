"""What well-known failures look like in a job's last words, and what to do about them.

The worker recognises them where the logs are; the service words the advice.
"""

import re
from dataclasses import dataclass
from typing import Final

ADDRESS_IN_USE: Final = "address-in-use"
LOST_RANK: Final = "lost-rank"
SINGLE_SAMPLE: Final = "single-sample"


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """One failure that is known by its words."""

    name: str
    pattern: re.Pattern[str]
    """Searched in the failing rank's traceback, or in its last lines."""
    advice: str
    """Goes on after "rank 0 exited with code 1: "."""


#: The first that matches counts.
FINGERPRINTS: tuple[Fingerprint, ...] = (
    Fingerprint(
        name=ADDRESS_IN_USE,
        pattern=re.compile(r"EADDRINUSE|address already in use", re.IGNORECASE),
        advice="the port that it listens at is in use on this box: do not fix one, take MASTER_PORT from the "
        "environment (`init_method='env://'`), or let the system choose (port 0)",
    ),
    Fingerprint(
        name=LOST_RANK,
        pattern=re.compile(
            r"PeerError: |Watchdog caught collective operation timeout"
            r"|gloo.*(?:Timed out waiting|Connection (?:closed|reset) by peer)"
        ),
        advice="it waited in vain for another rank, which hangs, failed or was killed: that rank's log says more",
    ),
    Fingerprint(
        name=SINGLE_SAMPLE,
        pattern=re.compile(r"Expected more than 1 value per channel when training"),
        advice="batch normalisation got a single sample, as an epoch's last batch may have: leave that out with "
        "drop_last (a key of recipes, an argument of DataLoader), or change the batch size",
    ),
)


def recognise(words: str) -> str | None:
    """The name of the failure that these last words tell of, if it is known."""
    return next((each.name for each in FINGERPRINTS if each.pattern.search(words)), None)


def advice(name: str | None) -> str | None:
    """What to do about a failure; None for one that is not known here."""
    return next((each.advice for each in FINGERPRINTS if each.name == name), None)
