"""Ranks that are gone when a collective operation fails: its own error names only a socket."""

import re
import time
from datetime import timedelta

import torch.distributed as dist
from torch.distributed.distributed_c10d import Store

from trainer.exceptions import PeerError

#: Ranks that wait in the same operation notice within moments of each other.
ROLL_CALL_S = 5.0
#: gloo begins with its own source file and line.
_PLACE = re.compile(r"^\[\S+:\d+\] ")
_SIGNS = (
    "Application timeout caused pair closure",
    "Broken pipe",
    "Connection closed by peer",
    "Connection reset by peer",
    "NCCL",
    "Timed out waiting",
    "timed out",
)


def explain(error: RuntimeError, store: Store, rank: int, size: int) -> PeerError | None:
    """Name the ranks that do not answer within `ROLL_CALL_S`; None when the error is of another kind.

    Every rank that fails comes here and answers; what hangs, was killed or ended by itself does not.
    """
    text = str(error)
    if size == 1 or not (isinstance(error, dist.DistError) or any(sign in text for sign in _SIGNS)):
        return None
    absent = roll_call(store, rank, size, ROLL_CALL_S)
    if not absent:
        return None
    noticed = _PLACE.sub("", text.strip().partition("\n")[0]).partition(". ")[0]
    return PeerError(f"{_named(absent)} no longer answers: it failed, was killed or hangs; see its log ({noticed})")


def roll_call(store: Store, rank: int, size: int, seconds: float) -> list[int]:
    """Return the ranks that do not answer; rank 0 when its store does not, where it keeps one."""
    try:
        store.set(_key(rank), "here")
        deadline = time.monotonic() + seconds
        return [other for other in range(size) if not _answers(store, other, deadline)]
    except dist.DistNetworkError:
        return [0]


def _answers(store: Store, rank: int, deadline: float) -> bool:
    try:
        store.wait([_key(rank)], timedelta(seconds=max(0.05, deadline - time.monotonic())))
    except dist.DistStoreError:
        return False
    return True


def _key(rank: int) -> str:
    return f"failed/{rank}"


def _named(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"each of the ranks {', '.join(map(str, ranks))}"
