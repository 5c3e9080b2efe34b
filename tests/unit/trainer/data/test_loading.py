from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset

from torchyard.recipe import Recipe
from trainer.data import TensorData, loading
from trainer.exceptions import RecipeError


@pytest.mark.parametrize(("device", "pinned"), [("cuda", True), ("cpu", False)])
def test_what_goes_to_a_gpu_is_pinned(device: str, pinned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only pinned memory is copied while the GPU computes; nothing is copied here, where there is none."""
    made: list[DataLoader[Any]] = []

    class Kept(DataLoader[Any]):
        def __iter__(self) -> Any:
            made.append(self)
            return iter(())

    monkeypatch.setattr(loading, "DataLoader", Kept)
    data = TensorDataset(torch.zeros(4, 2), torch.zeros(4))
    loading.load(data, [[0, 1], [2, 3]], Recipe(), torch.device(device), ("train",))  # type: ignore[arg-type]
    assert [each.pin_memory for each in made] == [pinned]


def test_samples_are_batched_of_sets_that_fetch_many_at_once() -> None:
    """As torch's `Subset` does, which `random_split` answers: a list of samples, where ours answer a batch."""
    samples, targets = torch.arange(8.0).view(4, 2), torch.arange(4)
    for data in (
        TensorData(samples, targets),
        TensorDataset(samples, targets),
        Subset(TensorDataset(samples, targets), [3, 2, 1, 0]),
    ):
        indices = [[0, 2], [1, 3]] if not isinstance(data, Subset) else [[3, 1], [2, 0]]
        pairs = loading.load(data, indices, Recipe(), torch.device("cpu"), ("train",))  # type: ignore[arg-type]
        assert [pair[1].tolist() for pair in pairs] == [[0, 2], [1, 3]]


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        ([{"image": torch.zeros(2), "label": 1}], "dict"),
        ([(torch.zeros(2), "cat")], "Tensor and tuple"),
        ([(torch.zeros(2), 1, 2)], "Tensor and Tensor and Tensor"),
        ([torch.zeros(2)], "Tensor"),
    ],
)
def test_samples_that_are_no_pair_are_refused_in_words(samples: Any, told: str) -> None:
    pairs = loading.load(samples, [[0]], Recipe(), torch.device("cpu"), ("train",))  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match=f"the data answer {told} for a batch: let a sample be"):
        next(pairs)
