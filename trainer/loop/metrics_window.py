"""Metrics since the last report: losses weighted by samples, speed, waiting, memory."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from trainer.distributed.collectives import all_reduce_sum
from trainer.distributed.world import World
from trainer.optimization.objective import TrainingObjective


class CorrectCounter:
    """Count of training samples that the model had right when it was trained on them; dropout and all."""

    def __init__(self, objective: TrainingObjective) -> None:
        self._objective = objective
        self._read = 0
        self._unread: list[Tensor] = []

    @property
    def known(self) -> bool:
        """True if the objective says which samples are right."""
        return self._objective.correct is not None

    def counting(self) -> TrainingObjective:
        """Return the objective with a loss that counts them: padding never reaches a loss."""
        return replace(self._objective, loss=self._loss) if self.known else self._objective

    def _loss(self, outputs: Any, targets: Tensor) -> Tensor:
        if self._objective.correct is not None:
            with torch.no_grad():
                self._unread.append(self._objective.correct(outputs, targets))
        return self._objective.loss(outputs, targets)

    def total(self) -> int:
        """Return the count since `begin`; here a rank waits for its devices."""
        if self._unread:
            # Replicas have devices of their own.
            first = self._unread[0].device
            self._read += int(torch.stack([each.to(first) for each in self._unread]).sum())
            self._unread.clear()
        return self._read

    def begin(self, count: int = 0) -> None:
        """Count anew."""
        self._read = count
        self._unread.clear()


class MetricsWindow:
    """Losses and times since the last report, kept on the device so that no step waits, reduced when they are read."""

    def __init__(self, world: World, correct: CorrectCounter, *, counts: bool = True) -> None:
        # Without `counts`, this rank's time and losses are left out: another one has the same share.
        self._world = world
        self._counts = counts
        self._correct = correct
        #: Sum of the losses that were read, and those that wait on the device.
        self._loss = 0.0
        self._unread: list[Tensor] = []
        #: Samples of this rank in both.
        self._own = 0
        self._seconds = 0.0
        self._since = time.perf_counter()
        self._steps = 0
        self._samples = 0
        #: Seconds that this rank has waited for data.
        self.waited = 0.0

    def add(self, loss_sum: Tensor, samples: int) -> None:
        """Add one pass: this rank's summed loss over its samples that count."""
        self._unread.append(loss_sum)
        self._own += samples

    def step(self, samples: int) -> None:
        """Count one step of the optimizer, on so many samples of all ranks."""
        self._steps += 1
        self._samples += samples

    def begin(self) -> None:
        """Start counting training time."""
        self._since = time.perf_counter()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out of the training time what is done inside."""
        self._seconds += time.perf_counter() - self._since
        yield
        self._since = time.perf_counter()

    def read(self, devices: int) -> dict[str, float]:
        """Return means over all ranks since the last reading, the same on every rank; all ranks call it.

        Memory in bytes: a GPU's peak of this process, or on the CPU the process's own.
        """
        seconds = max(self._seconds + time.perf_counter() - self._since, 1e-9)
        own = [self.waited, seconds, 1.0] if self._counts else [0.0, 0.0, 0.0]
        peaks = [0.0] * self._world.size
        peaks[self._world.rank] = memory_peak(self._world.device)
        # On the CPU, since not every rank need have a GPU.
        right = float(self._correct.total()) if self._counts else 0.0
        everything = torch.tensor([*self._sums(), right, *own, *peaks], dtype=torch.float64)
        total, samples, right, all_waited, all_seconds, ranks, *peaks = all_reduce_sum(everything).tolist()
        seconds = all_seconds / ranks
        throughput = self._samples / seconds
        read = {
            "train/loss": total / max(samples, 1.0),
            **({"train/accuracy": right / max(samples, 1.0)} if self._correct.known else {}),
            "throughput": throughput,
            "throughput/device": throughput / devices,
            "step_time": seconds / max(self._steps, 1),
            "data_wait": all_waited / all_seconds,
            **{f"memory_peak/rank{rank}": peak for rank, peak in enumerate(peaks)},
        }
        self._correct.begin()
        self._loss = 0.0
        self._own = self._steps = self._samples = 0
        self.waited = self._seconds = 0.0
        self._since = time.perf_counter()
        return read

    def _sums(self) -> tuple[float, float]:
        if self._unread:
            # One after the other, so that a reading in between, for a checkpoint, changes no bit of the sum.
            for loss in torch.stack(self._unread).double().tolist():
                self._loss += loss
            self._unread.clear()
        return self._loss, float(self._own)

    def state_dict(self) -> dict[str, Any]:
        """Sums of this rank, for a checkpoint."""
        return {"sums": list(self._sums()), "correct": self._correct.total()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._loss, samples = state["sums"]
        self._correct.begin(state.get("correct", 0))  # earlier checkpoints have none
        self._unread.clear()
        self._own = int(samples)


def memory_peak(device: torch.device) -> int:
    """Bytes: the most that this process has had allocated on its GPU, or resident on the CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
