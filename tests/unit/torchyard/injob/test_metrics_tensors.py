import pytest
import torch

import torchyard
from tests.support.attempt import AttemptFolder
from torchyard.injob import metrics
from torchyard.injob.metrics import DeviceScalar


def test_tensors_of_any_type_and_shape_with_one_element(folder: AttemptFolder) -> None:
    loss = torch.tensor([[0.5]], requires_grad=True)
    torchyard.report(step=0, loss=loss, count=torch.tensor(3), half=torch.tensor(0.25, dtype=torch.bfloat16))
    torchyard.report(step=1, loss=torch.zeros(2))
    assert metrics._recorder is not None
    metrics._recorder.flush()
    assert [record["v"] for record in folder.records()] == [{"loss": 0.5, "count": 3.0, "half": 0.25}, {}]


def test_copies_that_wait_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    original = metrics._read

    def counted(tensors: list[torch.Tensor], stream: object) -> list[float | None]:
        read.append(len(tensors))
        return original(tensors, stream)

    monkeypatch.setattr(metrics, "_read", counted)
    batch = [
        (step, 0, {"loss": DeviceScalar(torch.tensor(float(step)), None), "lr": 0.1}, None) for step in range(3)
    ] + [(3, 0, {"hits": DeviceScalar(torch.tensor(7), None)}, None)]
    metrics._resolve(batch)
    assert sorted(read) == [1, 3]
    assert [values for _, _, values, _ in batch] == [
        {"loss": 0.0, "lr": 0.1},
        {"loss": 1.0, "lr": 0.1},
        {"loss": 2.0, "lr": 0.1},
        {"hits": 7.0},
    ]
