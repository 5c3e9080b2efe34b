from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from torchyard.recipe import Recipe
from trainer.data import loading


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
