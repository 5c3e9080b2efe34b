from types import SimpleNamespace
from typing import Any

import pytest
import torch

from torchyard.injob import layout, share

GIB = 2**30


class Cuda:
    """A card of 80 GiB, and what torch was told of it."""

    def __init__(self) -> None:
        self.told: list[tuple[float, Any]] = []

    def get_device_properties(self, device: torch.device) -> Any:
        return SimpleNamespace(total_memory=80 * GIB)

    def set_per_process_memory_fraction(self, fraction: float, device: torch.device) -> None:
        self.told.append((fraction, device))


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    fake = Cuda()
    for name in ("get_device_properties", "set_per_process_memory_fraction"):
        monkeypatch.setattr(torch.cuda, name, getattr(fake, name))
    return fake


@pytest.mark.parametrize(("part", "fraction"), [(20 * GIB, 0.25), (100 * GIB, 1.0)])
def test_torch_keeps_to_the_part(cuda: Cuda, monkeypatch: pytest.MonkeyPatch, part: int, fraction: float) -> None:
    monkeypatch.setenv(layout.GPU_SHARE, str(part))
    devices = [torch.device("cuda", 0), torch.device("cpu"), torch.device("cuda", 1)]
    share.limit(devices)
    assert cuda.told == [(fraction, devices[0]), (fraction, devices[2])]


def test_a_job_that_has_its_gpus_alone_is_not_limited(cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(layout.GPU_SHARE, raising=False)
    share.limit([torch.device("cuda", 0)])
    assert not cuda.told


def test_the_devices_of_modules() -> None:
    modules = [torch.nn.Linear(1, 1), torch.nn.Linear(1, 1, device="meta"), object()]
    assert set(share.of(modules)) == {torch.device("cpu"), torch.device("meta")}
