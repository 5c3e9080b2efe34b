"""The ring all-reduce on send and receive: its sums, its bytes, its bits."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from tests.support import ranks, training
from trainer.distributed.process_group import joined
from trainer.strategies.ring import all_reduce

#: Shorter than the ring, and neither a multiple of three nor of four.
SIZES = (1, 2, 7, 1001)


def reduced() -> list[tuple[int, Tensor, Tensor]]:
    """For each size: bytes sent, this rank's sum, and the library's."""
    results = []
    with joined() as world:
        for size in SIZES:
            vector = torch.randn(size, generator=torch.Generator().manual_seed(100 * world.rank + size))
            library = vector.clone()
            dist.all_reduce(library)
            sent = all_reduce(vector, world.rank, world.size)
            results.append((sent, vector, library))
    return results


@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_sums_are_right_and_bytes_are_those_of_the_algorithm(world: int) -> None:
    """2 (ranks - 1) / ranks of the vector for each rank: exactly when it divides, else exactly for all together."""
    for size, *results in zip(SIZES, *ranks.run(reduced, world), strict=True):
        for sent, total, library in results:
            assert torch.equal(total, results[0][1])  # the same bits on all ranks
            torch.testing.assert_close(total, library)
            assert abs(sent - 2 * (world - 1) * 4 * size / world) < 2 * 4  # one element more or less in each half
        assert sum(sent for sent, _, _ in results) == 2 * (world - 1) * 4 * size


def test_a_training_sends_what_the_algorithm_says(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "model": {"name": "mlp", "hidden": [16]},
        "data": {"name": "synthetic", "samples": 24, "validation_samples": 7, "shape": [6]},
        "strategy": "ring",
        "epochs": 1,
        "batch_size": 4,
    }
    trained = training.train(given, 3, tmp_path / "run")
    proof = trained.proof["ranks"]
    (gradients,) = proof[0]["bucket_bytes"]
    assert gradients % 3 == 0
    assert gradients == sum(value.nbytes for value in trained.whole.values())
    assert [rank["bytes_sent_per_step"] for rank in proof] == [2 * 2 * gradients // 3] * 3
    assert [(rank["receives_from"], rank["sends_to"]) for rank in proof] == [(2, 1), (0, 2), (1, 0)]
    assert {rank["chunks"] for rank in proof} == {3}
