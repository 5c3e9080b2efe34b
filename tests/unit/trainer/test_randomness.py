import random

import numpy
import torch

from trainer import randomness

CPU = torch.device("cpu")


def draw() -> tuple[float, float, float]:
    return random.random(), float(numpy.random.rand()), float(torch.rand(()))


def test_streams_return_to_where_they_were() -> None:
    randomness.seed_all(5)
    draw()
    random.gauss(0, 1)  # keeps half a pair
    saved = randomness.state(CPU)
    expected = draw(), random.gauss(0, 1)
    randomness.seed_all(6)
    randomness.restore(saved, CPU)
    assert (draw(), random.gauss(0, 1)) == expected


def test_ranks_and_purposes_have_their_own_seeds() -> None:
    seeds = {randomness.derive(1, "rank", 0), randomness.derive(1, "rank", 1), randomness.derive(1, "order", 0)}
    assert len(seeds) == 3
    assert all(0 <= seed < 2**63 for seed in seeds)
