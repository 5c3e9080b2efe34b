"""Seeds: the same initial weights everywhere, then a random stream of its own for every rank."""

import hashlib
import random
from collections.abc import Sequence

import numpy
import torch
from torch import Tensor


def derive(seed: int, *names: object) -> int:
    """Derive a seed below 2**63 for a purpose: ``derive(seed, "rank", 3)``."""
    text = ":".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def seed_all(seed: int) -> None:
    """Seed Python, numpy and torch (also on the GPU)."""
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)


class RandomStreams:
    """Random streams of the GPUs behind a process's first, whose own a checkpoint holds anyway."""

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self.devices = [each for each in dict.fromkeys(devices[1:]) if each.type == "cuda" and each != devices[0]]

    def state_dict(self) -> dict[str, list[Tensor]]:
        return {"cuda": [torch.cuda.get_rng_state(device) for device in self.devices]}

    def load_state_dict(self, state: dict[str, list[Tensor]]) -> None:
        for device, stream in zip(self.devices, state["cuda"], strict=False):
            torch.cuda.set_rng_state(stream, device)
