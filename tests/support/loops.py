"""Ways in which scripts take batches from their loaders, to be stopped and resumed at any step."""

import itertools
import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, RandomSampler

import torchyard
from torchyard.injob import control
from torchyard.injob.attach import TrainingRun


class Numbers(Dataset[Tensor]):
    """Some of them draw from the global stream when they are loaded."""

    def __init__(self, samples: int, *, noisy: bool = False) -> None:
        self.samples = samples
        self.noisy = noisy

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor(float(index)) + (torch.rand(()) if self.noisy else 0)


class Weights:
    """What a batch and a random number change."""

    def __init__(self) -> None:
        self.value = torch.zeros((), dtype=torch.float64)

    def learn(self, batch: Tensor) -> None:
        self.value = 0.7 * self.value + batch.double().sum() + torch.rand(()).double()

    def state_dict(self) -> dict[str, Tensor]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.value = state["value"].clone()


@dataclass(frozen=True, kw_only=True)
class Loop:
    """One script."""

    style: str = "plain"
    batches: int = 7
    epochs: int = 3
    order: str = "shuffled"
    noisy: bool = False
    workers: int = 0
    #: Batches that a look takes at the beginning of each epoch, and after which step of the epoch it looks again.
    looks: tuple[int, ...] = ()
    kept_open: bool = False
    look_at: int | None = None
    accumulated: int = 1
    steps_each: int = 1
    #: Whether a report follows the loop, and a pass over another loader.
    last_report: bool = False
    evaluates: bool = False
    draws: bool = False
    bounded: bool = True


class Stopped(BaseException):
    """The job has left."""


class Script:
    """A loop that runs to its end, or until it is stopped."""

    def __init__(self, loop: Loop, *, restore: Path | None = None) -> None:
        torch.manual_seed(3)
        self.loop = loop
        self.weights = Weights()
        data = Numbers(loop.batches * 2, noisy=loop.noisy)
        options: dict[str, Any] = {"shuffle": loop.order != "given"}
        if loop.order == "generator":
            options["generator"] = torch.Generator().manual_seed(5)
        if loop.order == "replaced":
            options = {"sampler": RandomSampler(data, replacement=True, generator=torch.Generator().manual_seed(6))}
        self.loader = DataLoader(data, batch_size=2, num_workers=loop.workers, **options)
        if loop.workers:
            self.loader.multiprocessing_context = "fork"
        self.other = DataLoader(Numbers(loop.batches * 2), batch_size=2, shuffle=True)
        self.run: TrainingRun = torchyard.attach(loader=self.loader, weights=self.weights, restore=restore)
        self._kept: list[Any] = []

    def train(self) -> "Script":
        epochs = self.run.epochs(self.loop.epochs) if self.loop.bounded else range(self.run.epoch, self.loop.epochs)
        for _ in epochs:
            self._epoch()
        self.run.finish()
        return self

    def _epoch(self) -> None:
        loop = self.loop
        offset = float(torch.rand(())) if loop.draws else 0.0
        for count in loop.looks:
            self._look(count)
        waiting: list[Tensor] = []
        taken = self.run.batch
        for batch in self._batches():
            waiting.append(batch + offset)
            taken += 1
            if taken == loop.look_at:
                self._look(1)
            if len(waiting) >= loop.accumulated:
                self._steps(waiting)
                waiting = []
        if waiting:
            self._steps(waiting)
        self._after_the_loop()

    def _after_the_loop(self) -> None:
        if self.loop.evaluates:
            for _ in self.other:
                torch.rand(())
                self.run.checkpoint_if_due()
        if self.loop.last_report:
            self.run.report()

    def _steps(self, batches: list[Tensor]) -> None:
        for _ in range(self.loop.steps_each):
            self.weights.learn(torch.stack([batch.sum() for batch in batches]))
            self.run.report()

    def _look(self, count: int) -> None:
        iterator = iter(self.loader)
        for _ in itertools.islice(iterator, count):
            pass
        if self.loop.kept_open:
            self._kept.append(iterator)

    def _batches(self) -> Iterable[Tensor]:
        return STYLES[self.loop.style](self)


def _broken_off(script: Script) -> Iterator[Tensor]:
    for number, batch in enumerate(script.loader):
        if number == 4:
            break
        yield batch


def _broken_off_at_its_place(script: Script) -> Iterator[Tensor]:
    for number, batch in enumerate(script.loader, start=script.run.batch):
        if number == 4:
            break
        yield batch


def _nested(script: Script) -> Iterator[Tensor]:
    for outer in itertools.islice(script.loader, 2):
        for inner in script.loader:
            yield outer + 2 * inner


def _each_its_own(script: Script) -> Iterator[Tensor]:
    for _ in range(5):
        yield next(iter(script.loader))


def _cycled(script: Script) -> Iterator[Tensor]:
    return itertools.islice(itertools.cycle(script.loader), script.loop.batches * 2)


def _ahead(script: Script) -> Iterator[Tensor]:
    batches = iter(script.loader)
    waiting = list(itertools.islice(batches, 1))
    while waiting:
        waiting += itertools.islice(batches, 1)
        yield waiting.pop(0)


def _far_ahead(script: Script) -> Iterator[Tensor]:
    batches = iter(script.loader)
    waiting = list(itertools.islice(batches, 3))
    while waiting:
        yield waiting.pop(0)
        waiting += itertools.islice(batches, 1)


def _in_a_thread(script: Script) -> Iterator[Tensor]:
    waiting: queue.Queue[Tensor | None] = queue.Queue(2)
    left = threading.Event()

    def put(batch: Tensor | None) -> None:
        while not left.is_set():
            try:
                waiting.put(batch, timeout=0.01)
            except queue.Full:
                continue
            return

    def fetch() -> None:
        for batch in script.loader:
            put(batch)
            if left.is_set():
                return
        put(None)

    thread = threading.Thread(target=fetch)
    thread.start()
    try:
        while (batch := waiting.get()) is not None:
            yield batch
    finally:
        left.set()
        thread.join()


def _twice(script: Script) -> Iterator[Tensor]:
    yield from script.loader
    yield from script.loader


def _other_then_own(script: Script) -> Iterator[Tensor]:
    yield from script.other
    yield from script.loader


STYLES: dict[str, Any] = {
    "plain": lambda script: script.loader,
    "broken off": _broken_off,
    "broken off at its place": _broken_off_at_its_place,
    "islice": lambda script: itertools.islice(script.loader, 4),
    "zip of itself": lambda script: (a + 2 * b for a, b in zip(script.loader, script.loader, strict=False)),
    "zip of two": lambda script: (a + 2 * b for a, b in zip(script.loader, script.other, strict=False)),
    "nested": _nested,
    "each its own": _each_its_own,
    "cycle": _cycled,
    "ahead": _ahead,
    "far ahead": _far_ahead,
    "thread": _in_a_thread,
    "twice": _twice,
    "two loaders": _other_then_own,
}


def whole(loop: Loop) -> Script:
    """The script that is never stopped."""
    return Script(loop).train()


def stopped(loop: Loop, step: int, monkeypatch: pytest.MonkeyPatch) -> Path | None:
    """The checkpoint with which it leaves after that step, as soon as one may be taken; None if it came to its end."""
    script = Script(loop)
    save = script.run._save

    def leave(metrics: Any) -> None:
        save(metrics)
        script.run.finish()
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(script.run, "_save", leave)
        patched.setattr(control, "should_checkpoint", lambda: script.run.step >= step)
        try:
            script.train()
        except Stopped:
            return Path(f"checkpoints/step-{script.run.step:09d}")
    return None


def resumed(loop: Loop, checkpoint: Path) -> Script:
    """The script that goes on."""
    return Script(loop, restore=checkpoint).train()
