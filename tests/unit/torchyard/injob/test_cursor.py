"""The place in every kind of loader, and what is not exact about it."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

import torchyard
from tests.support.attached import Seen


class Range(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(20))


class Lazy(Sampler[int]):
    """Draws from the global stream at each index."""

    def __len__(self) -> int:
        return 20

    def __iter__(self) -> Iterator[int]:
        for _ in range(20):
            yield int(torch.randint(20, ()))


class Numbers(torch.utils.data.Dataset[int]):
    def __init__(self) -> None:
        self.epoch = -1
        self.loaded = 0

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> int:
        self.loaded += 1
        return index

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class StatefulCursor:
    """Keeps its place itself."""

    def __init__(self) -> None:
        self.at = self.epoch = 0

    def __iter__(self) -> Iterator[int]:
        while self.at < 10:
            self.at += 1
            yield 100 * self.epoch + self.at

    def set_epoch(self, epoch: int) -> None:
        self.at, self.epoch = 0, epoch

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at, "epoch": self.epoch}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at, self.epoch = state["at"], state["epoch"]


def taken(run: Any, loader: Iterable[Any], *, epochs: int = 2, until: int | None = None) -> list[Any]:
    """What the loop gets, a value of its own drawn with each."""
    found = []
    for _ in run.epochs(epochs):
        for batch in loader:
            found.append((torch.as_tensor(batch).tolist(), float(torch.rand(()))))
            run.report()
            if run.step == until:
                run.save()
                run.finish()
                return found
    return found


def stopped_and_resumed(make: Any, folder: Path, *, at: int) -> tuple[list[Any], list[Any], list[Any], Any]:
    """What the loop gets when it is never stopped, and before and after a stop; the resumed run."""
    loaders = [make() for _ in range(3)]
    torch.manual_seed(1)
    whole = taken(torchyard.attach(loader=loaders[0]), loaders[0])
    torch.manual_seed(1)
    before = taken(torchyard.attach(loader=loaders[1]), loaders[1], until=at)
    run = torchyard.attach(loader=loaders[2], restore=folder / f"checkpoints/step-{at:09d}")
    return whole, before, taken(run, loaders[2]), run


def orders(data: Numbers) -> dict[str, Any]:
    weights = torch.arange(1, 21, dtype=torch.float)
    return {
        "none": {"batch_size": 3},
        "shuffled": {"batch_size": 3, "shuffle": True},
        "replaced": {"batch_size": 3, "sampler": RandomSampler(data, replacement=True, num_samples=70)},
        "subset": {"batch_size": 3, "sampler": SubsetRandomSampler(range(5, 20))},
        "weighted": {"sampler": WeightedRandomSampler(weights.tolist(), 20), "batch_size": 3, "drop_last": True},
        "batch sampler": {"batch_sampler": BatchSampler(RandomSampler(data), 3, drop_last=False)},
        "single": {"batch_size": None, "shuffle": True},
    }


@pytest.mark.parametrize("order", orders(Numbers()))
@pytest.mark.parametrize("at", [3, 9])
def test_every_order_goes_on(order: str, at: int, off_the_queue: Path) -> None:
    def make() -> Any:
        data = Numbers()
        return DataLoader(data, **orders(data)[order])

    whole, before, after, run = stopped_and_resumed(make, off_the_queue, at=at)
    assert before + after == whole
    assert run.inexact is None
    assert isinstance(make(), DataLoader)


def test_what_was_taken_is_not_loaded_again(off_the_queue: Path) -> None:
    data = Numbers()

    def make() -> Any:
        return DataLoader(data, batch_size=2, shuffle=True)

    _, before, _, _ = stopped_and_resumed(make, off_the_queue, at=8)
    assert data.loaded == 40 + 2 * len(before) + (40 - 2 * len(before))
    assert data.epoch == 1


def test_a_loader_that_keeps_its_place(off_the_queue: Path) -> None:
    whole, before, after, run = stopped_and_resumed(StatefulCursor, off_the_queue, at=13)
    assert before + after == whole
    assert run.inexact is None


def test_an_iterable_data_set_is_read_again(off_the_queue: Path) -> None:
    whole, before, after, run = stopped_and_resumed(lambda: DataLoader(Range(), batch_size=3), off_the_queue, at=9)
    assert before + after == whole
    assert run.inexact == "the data set is an iterable: its first 2 batches are read again and dropped"


def test_any_other_iterable_begins_its_epoch_anew(off_the_queue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, _, after, run = stopped_and_resumed(lambda: [1, 2, 3], off_the_queue, at=5)
    assert [batch for batch, _ in after] == [1, 2, 3]
    assert [batch for batch, _ in whole] == [1, 2, 3, 1, 2, 3]
    assert run.inexact == "the loader is a list, which does not tell its place: an epoch is begun anew"
    assert f"resumed at step 5, but not exactly: {run.inexact}" in capsys.readouterr().err


def test_a_sampler_that_draws_as_it_goes_is_told_of(off_the_queue: Path) -> None:
    *_, run = stopped_and_resumed(lambda: DataLoader(Numbers(), sampler=Lazy()), off_the_queue, at=5)
    assert "draws from the global random streams as it goes" in run.inexact


def test_other_batches_begin_the_epoch_anew(off_the_queue: Path) -> None:
    sizes = iter((2, 2, 4))
    *_, after, run = stopped_and_resumed(lambda: DataLoader(Numbers(), batch_size=next(sizes)), off_the_queue, at=13)
    assert next(batch for batch, _ in after) == [0, 1, 2, 3]
    assert "its batches are not those of the checkpoint" in run.inexact


def test_a_look_into_the_loader_before_the_epochs_changes_nothing(off_the_queue: Path) -> None:
    def loop(run: Any, loader: Any, until: int | None = None) -> list[Any]:
        next(iter(loader))
        return taken(run, loader, until=until)

    loaders = [DataLoader(Numbers(), batch_size=3, generator=torch.Generator().manual_seed(1)) for _ in range(2)]
    first = loop(torchyard.attach(loader=loaders[0]), loaders[0], until=3)
    run = torchyard.attach(loader=loaders[1], restore=off_the_queue / "checkpoints/step-000000003")
    assert run.batch == 3
    assert [batch for batch, _ in first + loop(run, loaders[1])] == [batch.tolist() for batch in loaders[0]] * 2


def test_saving_after_the_loop_ends_the_epoch(off_the_queue: Path) -> None:
    loader = DataLoader(Seen(8), batch_size=4)
    run = torchyard.attach(loader=loader)
    for _ in run.epochs(1):
        for _ in loader:
            run.report()
        run.save()
    resumed = torchyard.attach(loader=loader, restore=off_the_queue / "checkpoints/step-000000002")
    assert (resumed.epoch, resumed.batch) == (1, 0)
    assert list(resumed.epochs(1)) == []
