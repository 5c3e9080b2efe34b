"""Random streams of a process: Python's, NumPy's if it is in use, torch's on the CPU and on the current CUDA device."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def capture() -> dict[str, Any]:
    """States of this process's random streams, as plain data."""
    torch = sys.modules["torch"]
    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()
        state["numpy"] = [name, keys.tolist(), *rest]
    if torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def restore(state: Mapping[str, Any]) -> None:
    """Put the streams back; one that is not in use here is left alone."""
    torch = sys.modules["torch"]
    version, keys, gauss = state["python"]
    random.setstate((version, tuple(keys), gauss))
    torch.set_rng_state(state["torch"])
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in state:
        name, keys, *rest = state["numpy"]
        numpy.random.set_state((name, numpy.array(keys, dtype=numpy.uint32), *rest))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def seed(value: int) -> None:
    """Begin the streams anew."""
    random.seed(value)
    sys.modules["torch"].manual_seed(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(value % 2**32)


def seed_of(digest: Any) -> int:
    """Return the seed that a hash is."""
    return int.from_bytes(digest.digest()[:8], "little") >> 1


def moved(before: Mapping[str, Any]) -> bool:
    """Return whether Python's or torch's stream has been drawn from since."""
    now = capture()
    return bool(now["python"] != before["python"] or (now["torch"] != before["torch"]).any())


def same(states: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether all ranks' torch streams were at one place: then any number of ranks can go on from it."""
    return len(states) > 1 and all(bool((state["torch"] == states[0]["torch"]).all()) for state in states)


def derived(states: Sequence[Mapping[str, Any]], rank: int, ranks: int) -> dict[str, Any]:
    """Fresh streams for this rank of another number of ranks, seeded by where the old ones were."""
    digest = hashlib.sha256(repr((rank, ranks)).encode())
    for state in states:
        digest.update(bytes(state["torch"].tolist()))
    before = capture()
    seed(seed_of(digest))
    fresh = capture()
    restore(before)
    return fresh
