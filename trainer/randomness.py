"""Seeds: the same initial weights everywhere, then a random stream of its own for every rank."""

import hashlib
import random
from typing import Any

import numpy
import torch


def derive(seed: int, *names: object) -> int:
    """A seed below 2**63 for a purpose: ``derive(seed, "rank", 3)``."""
    text = ":".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def seed_all(seed: int) -> None:
    """Seeds Python, numpy and torch (also on the GPU)."""
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def state(device: torch.device) -> dict[str, Any]:
    """The position of all random streams of this process, as tensors and plain numbers."""
    kind, keys, *rest = numpy.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": (kind, numpy.asarray(keys).tolist(), *rest),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
    }


def restore(saved: dict[str, Any], device: torch.device) -> None:
    """Puts the random streams back to where `state` found them."""
    version, internal, gauss = saved["python"]
    random.setstate((version, tuple(internal), gauss))
    kind, keys, *rest = saved["numpy"]
    numpy.random.set_state((kind, numpy.array(keys, dtype=numpy.uint32), *rest))
    torch.set_rng_state(saved["torch"])
    if device.type == "cuda" and saved["cuda"] is not None:
        torch.cuda.set_rng_state(saved["cuda"], device)
