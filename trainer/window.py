"""The training loss since the last report, weighted by samples."""

import time

import torch
from torch import Tensor

from trainer.distributed import summed


class Window:
    """Sums on the device, so that a step never waits for the GPU; reduced over the ranks when it is read."""

    def __init__(self, device: torch.device) -> None:
        self._sums = torch.zeros(2, dtype=torch.float64, device=device)
        self._seconds = 0.0
        self._since = time.perf_counter()
        self._timed_samples = 0

    def add(self, loss_sum: Tensor, samples: int, step_samples: int) -> None:
        """One step: this rank's summed loss over its samples, and the samples of all ranks."""
        self._sums[0] += loss_sum.detach()
        self._sums[1] += samples
        self._timed_samples += step_samples

    def pause(self) -> None:
        """Time until `go_on` is not training."""
        self._seconds += time.perf_counter() - self._since

    def go_on(self) -> None:
        self._since = time.perf_counter()

    def read(self) -> tuple[float, float]:
        """Mean loss of all ranks and samples per second of all ranks, since the last reading."""
        total, samples = summed(self._sums).tolist()
        self.pause()
        throughput = self._timed_samples / max(self._seconds, 1e-9)
        self._sums.zero_()
        self._seconds, self._timed_samples = 0.0, 0
        self.go_on()
        return total / max(samples, 1.0), throughput

    def state(self) -> tuple[float, float]:
        """Sums of this rank, for a checkpoint."""
        total, samples = self._sums.tolist()
        return total, samples

    def restore(self, state: tuple[float, float]) -> None:
        self._sums.copy_(torch.tensor(state, dtype=torch.float64))
