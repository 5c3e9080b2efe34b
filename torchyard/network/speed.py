"""Speed of the network between a job's nodes, as a run has measured it, and its cost for a training.

The trainer measures and warns in the run's log; the service remembers and warns whoever wants several nodes.
"""

from typing import Final

#: The metric by which a run tells: bytes a second that a rank sends in an all-reduce over all ranks.
METRIC: Final = "network/bytes_per_second"
#: Above this part of a step the exchange is worth a warning.
WORTH_A_WORD: Final = 0.5
#: What stands for a training of which nothing is known: bytes that a rank sends in a step, and the step's seconds.
TYPICAL_BYTES: Final = 100e6
TYPICAL_STEP: Final = 0.2
MENDS: Final = "One node, accumulate, or strategy: {name: ddp, hook: bf16} may be faster"


def share(rate: float, sent: float, step_time: float) -> float:
    """The part of a step that an exchange takes, at least 1 when it takes all.

    `rate` in bytes a second, `sent` in bytes, `step_time` in seconds.
    """
    return sent / rate / step_time


def is_slow(rate: float, sent: float = TYPICAL_BYTES, step_time: float = TYPICAL_STEP) -> bool:
    """Return whether a training waits for the network for a part of its steps that is worth a warning."""
    return share(rate, sent, step_time) >= WORTH_A_WORD


def shown(rate: float) -> str:
    """``1.2 GB/s``, ``100 MB/s``."""
    return f"{rate / 1e9:,.1f} GB/s" if rate >= 1e9 else f"{rate / 1e6:,.3g} MB/s"
