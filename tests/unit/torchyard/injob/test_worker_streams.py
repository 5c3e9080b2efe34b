"""What is drawn in a loader's processes belongs to epoch, batch and rank, whichever process draws it."""

import pickle
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

import torchyard
from torchyard.injob import worker_streams

RNG = {"random": {"torch": torch.zeros(4, dtype=torch.uint8)}, "generators": []}


class Drawn(Dataset[Tensor]):
    """Numbers that are drawn when they are loaded."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Tensor:
        return torch.rand(()) + random.random()


def epochs(workers: int, **options: Any) -> list[Tensor]:
    """The batches of two epochs in order, with nothing drawn in the training's own process but by the loader."""
    torch.manual_seed(1)
    loader = DataLoader(Drawn(), batch_size=3, num_workers=workers, multiprocessing_context="fork", **options)
    run = torchyard.attach(loader=loader)
    found: list[list[Tensor]] = []
    for _ in run.epochs(2):
        found.append([])
        for batch in loader:
            found[-1].append(batch)
            run.report()
    run.finish()
    return [torch.cat(each) for each in found]


def test_any_number_of_processes_draws_the_same(off_the_queue: Path) -> None:
    (first, second), others = epochs(1), epochs(2)
    assert torch.equal(first, others[0])
    assert torch.equal(second, others[1])
    assert len(set(torch.cat([first, second]).tolist())) == 24


def test_processes_that_stay_draw_anew_in_each_epoch(off_the_queue: Path) -> None:
    first, second = epochs(2, persistent_workers=True)
    assert not set(first.tolist()) & set(second.tolist())


def test_batches_that_are_no_lists_stay_what_they_are() -> None:
    batches: list[Any] = [(1, 2), 3, torch.tensor([4])]
    assert [id(each) for each in worker_streams.seeded(batches, RNG, (0, 0), 0)] == [id(each) for each in batches]


def test_the_process_that_sends_indices_draws_as_before() -> None:
    (indices,) = worker_streams.seeded([[5, 6]], RNG, (0, 0), 0)
    before = torch.get_rng_state()
    received = pickle.loads(pickle.dumps(indices))
    assert type(received) is list
    assert received == indices == [5, 6]
    assert torch.equal(torch.get_rng_state(), before)


def test_each_rank_epoch_pass_and_batch_has_a_seed_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def seeds(ordinal: tuple[int, int], first: int) -> list[int]:
        return [each.seed for each in worker_streams.seeded([[0], [1]], RNG, ordinal, first)]

    zero = seeds((0, 0), 0)
    assert seeds((0, 0), 1)[0] == zero[1]
    others = [*zero, *seeds((1, 0), 0), *seeds((0, 1), 0)]
    monkeypatch.setenv("RANK", "1")
    assert len({*others, *seeds((0, 0), 0)}) == 8
