"""Data parallelism in one process: scatter, replicate, parallel apply, gather, with autograd through all four.

The algorithm is that of ``torch.nn.DataParallel`` (https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html),
written again because PyTorch's does nothing on the CPU and splits evenly only. Here several replicas may be on one
device, the CPU among them, and each may take a share of its own size. Never run on two GPUs.

It is slow, as PyTorch's is: the model is copied in every pass, all gradients come back to one device, which also
holds the optimizer and the outputs, and one interpreter drives all devices.
"""

import copy
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn

#: Called with a replica and its part of each scattered tensor.
Work = Callable[..., Any]


def portions(samples: int, weights: Sequence[int]) -> list[int]:
    """Samples of each replica, in proportion to the weights and exactly these when they add up to `samples`.

    The first replica gets at least one: its buffers are the ones that are kept.
    """
    total = sum(weights)
    ends = [max(1, (2 * samples * end + total) // (2 * total)) for end in accumulate(weights)]
    return [end - begin for begin, end in pairwise([0, *ends])]


class Replicas(nn.Module):
    """A model, which is the first replica, and copies of it on other devices.

    Gradients of all replicas add up in the model's own parameters. Buffers that a forward pass updates (BatchNorm's
    running statistics) are kept as the first replica leaves them, those of the others are dropped.
    """

    def __init__(self, model: nn.Module, devices: Sequence[torch.device], weights: Sequence[int]) -> None:
        super().__init__()
        self.model = model
        self.copies = [ReplicaCopy(model, device) for device in devices[1:]]
        self.devices = devices
        self._weights = weights
        self._threads = ReplicaThreads(devices)
        self._traffic = ByteCounter()
        #: Samples of each replica in each pass of the step that is under way.
        self.step: list[list[int]] = []

    def forward(self, inputs: Tensor) -> Any:
        """Outputs of all samples, in order, on the first device."""
        return self.gather(self.each(_call, inputs))

    def each(self, work: Work, *tensors: Tensor) -> list[Any]:
        """Call `work` for each replica and its samples; replicas without samples are left out."""
        sizes = portions(len(tensors[0]), self._weights)
        if self.model.training:
            self.step.append(sizes)
        scattered = zip(*(torch.split(tensor, sizes) for tensor in tensors), strict=True)
        wanted = [place for place, size in enumerate(sizes) if size]
        replicas = self._replicate(wanted)
        jobs = [
            (self.devices[place], _job(work, replicas[place], [self._move(part, place) for part in parts]))
            for place, parts in enumerate(scattered)
            if place in replicas
        ]
        return self._threads.run(jobs)

    def gather(self, outputs: list[Any]) -> Any:
        """Join tensors on the first device, stack numbers to a vector, and do so for mappings key by key."""
        first = outputs[0]
        if isinstance(first, Mapping):
            return {name: self.gather([each[name] for each in outputs]) for name in first}
        here = [first, *(self._move(each, 0, counted=True) for each in outputs[1:])]
        return torch.cat(here) if first.dim() else torch.stack(here)

    def moved(self) -> int:
        """Bytes that went between replicas in training since the last call: parameters, samples, outputs, gradients."""
        return self._traffic.read()

    def _replicate(self, wanted: list[int]) -> dict[int, nn.Module]:
        """Return the replicas of these places, filled with the present parameters."""
        replicas = {0: self.model} if 0 in wanted else {}
        packed = [(group, torch.cat([each.reshape(-1) for each in group])) for group in _alike(self.model.parameters())]
        for place in wanted:
            if place > 0:
                values: dict[Tensor, Tensor] = {}
                for group, flat in packed:
                    there = self._move(flat, place)
                    values.update(zip(group, _cut(there, group), strict=True))
                replicas[place] = self.copies[place - 1].filled(self.model, values)
        return replicas

    def _move(self, tensor: Tensor, place: int, *, counted: bool = False) -> Tensor:
        """Copy to a replica's device, through which gradients come back."""
        if place == 0 and not counted:
            return tensor.to(self.devices[0])
        moved = tensor.to(self.devices[place], non_blocking=True, copy=True)
        if self.model.training:
            self._traffic.add(moved)
            if moved.requires_grad:
                moved.register_hook(self._traffic.add)  # type: ignore[no-untyped-call]
        return moved


class ReplicaCopy:
    """The structure of a model without parameters of its own: it is filled for each pass."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        # What the memo has is not copied: neither parameters nor buffers take memory here.
        shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
        self.module = copy.deepcopy(model, shared)
        self._device = device
        self._places = [
            (module, name, parameter)
            for module in self.module.modules()
            for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False)
        ]
        for module, name, _ in self._places:
            delattr(module, name)

    def filled(self, model: nn.Module, values: Mapping[Tensor, Tensor]) -> nn.Module:
        """Fill the copy with these values in place of the model's parameters, and with its buffers and mode."""
        for module, name, parameter in self._places:
            setattr(module, name, values[parameter])
        for here, there in zip(self.module.modules(), model.modules(), strict=True):
            here.training = there.training
            for name, buffer in there.named_buffers(recurse=False, remove_duplicate=False):
                setattr(here, name, buffer.to(self._device, copy=True))
        return self.module

    def held(self) -> list[Tensor]:
        """The parameters that it was filled with last."""
        filled = {id(parameter): getattr(module, name, None) for module, name, parameter in self._places}
        return [tensor for tensor in filled.values() if tensor is not None]


class ReplicaThreads:
    """A thread for each distinct device: devices work at once, replicas of one device one after the other.

    One after the other, replicas on the CPU draw their random numbers in the same order in every run.
    """

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._pool = ThreadPoolExecutor(len(set(devices)), "replica")

    def run(self, jobs: list[tuple[torch.device, Callable[[], Any]]]) -> list[Any]:
        """Return the answer of each job, in order; raises what the first of them raised."""
        by_device: dict[torch.device, list[int]] = {}
        for number, (device, _) in enumerate(jobs):
            by_device.setdefault(device, []).append(number)
        carried = _carried(jobs[0][0].type)

        def work(device: torch.device, numbers: list[int]) -> list[Any]:
            with carried(), torch.cuda.device(device if device.type == "cuda" else -1):
                return [jobs[number][1]() for number in numbers]

        pending = [self._pool.submit(work, device, numbers) for device, numbers in by_device.items()]
        answers: dict[int, Any] = {}
        for numbers, future in zip(by_device.values(), pending, strict=True):
            answers.update(zip(numbers, future.result(), strict=True))
        return [answers[number] for number in range(len(jobs))]


class ByteCounter:
    """Sum of bytes that several threads add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes = 0

    def add(self, tensor: Tensor) -> None:
        with self._lock:
            self._bytes += tensor.nbytes

    def read(self) -> int:
        with self._lock:
            total, self._bytes = self._bytes, 0
        return total


def _carried(kind: str) -> Callable[[], Any]:
    """Return the modes of this thread, to be entered in others: gradients and autocast belong to a thread each."""
    gradients = torch.is_grad_enabled()
    options: dict[str, Any] = {
        "dtype": torch.get_autocast_dtype(kind),
        "enabled": torch.is_autocast_enabled(kind),
        "cache_enabled": torch.is_autocast_cache_enabled(),
    }

    @contextmanager
    def entered() -> Iterator[None]:
        with torch.set_grad_enabled(gradients), torch.autocast(kind, **options):
            yield

    return entered


def _job(work: Work, replica: nn.Module, parts: list[Tensor]) -> Callable[[], Any]:
    return lambda: work(replica, *parts)


def _call(replica: nn.Module, inputs: Tensor) -> Any:
    return replica(inputs)


def _alike(parameters: Iterator[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Parameters that can travel in one vector."""
    groups: dict[tuple[torch.dtype, bool], list[nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault((parameter.dtype, parameter.requires_grad), []).append(parameter)
    return list(groups.values())


def _cut(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    parts = torch.split(flat, [each.numel() for each in like])
    return [part.view(each.shape) for part, each in zip(parts, like, strict=True)]
