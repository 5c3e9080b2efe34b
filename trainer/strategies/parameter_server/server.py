"""A server: holds parameters and the optimizer's state for them, takes gradients, steps, answers with parameters."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.data.loading import Batch
from trainer.strategies.base import placed
from trainer.strategies.parameter_server.common import CPU, ParameterServerStrategy
from trainer.strategies.parameter_server.sharding import FlatLayout, Shard, shards


class ModelOutline:
    """The whole model for a checkpoint, in names and shapes alone; of one that is loaded, what this server holds."""

    def __init__(self, model: nn.Module, held: Mapping[str, Tensor]) -> None:
        self._model = model
        self._held = held

    def named_modules(self, **options: Any) -> Iterator[tuple[str, nn.Module]]:
        yield from self._model.named_modules(**options)

    def state_dict(self) -> dict[str, Any]:
        return self._model.state_dict()

    @torch.no_grad()
    def load_state_dict(self, saved: Mapping[str, Tensor]) -> None:
        for name, value in self._held.items():
            value.copy_(saved[name])


class ServerStrategy(ParameterServerStrategy):
    """A rank without a device. Its `model` is on the meta device; what it holds lies in one buffer, ready to send."""

    def wrap(self, model: nn.Module) -> nn.Module:
        self._hold(shards(model, len(self.servers))[self.world.rank - self.servers.start])
        self._listed = {name: self._held.get(name, _outline(value)) for name, value in model.named_parameters()}
        self._steps = 0
        #: Updates done; and how many those were when each worker last took parameters.
        self._version = 0
        self._taken = [0] * len(self.workers)
        self._pushed = [0] * len(self.workers)
        self._staleness: Counter[int] = Counter()
        self.model = model.to("meta")
        return self.model

    @torch.no_grad()
    def _hold(self, shard: Shard) -> None:
        layout, count = FlatLayout(shard.tensors), len(shard.parameters)
        self._sent, self._received, self._sum = (layout.buffer(CPU) for _ in range(3))
        own, self._incoming, self._total = map(layout.views, (self._sent, self._received, self._sum))
        torch._foreach_copy_(own, shard.tensors)
        self._held = dict(zip(shard.parameters, map(nn.Parameter, own[:count]), strict=True))
        self._buffers = dict(zip(shard.buffers, own[count:], strict=True))

    @property
    def loads(self) -> bool:
        return False

    @property
    def counts(self) -> bool:
        return False

    def parameters(self) -> list[nn.Parameter]:
        return list(self._listed.values())

    @property
    def stepped(self) -> set[int]:
        return {number for number, name in enumerate(self._listed) if name in self._held}

    def modules(self) -> list[nn.Module]:
        return []

    def saved(self) -> tuple[Any, Any]:
        return ModelOutline(self.model, {**self._held, **self._buffers}), self.optimizer

    def whole_state(self) -> dict[str, Tensor]:
        return {name: value.detach() for name, value in {**self._held, **self._buffers}.items()}

    def backward(self, batch: Batch) -> Tensor:  # noqa: ARG002 (workers do it)
        return torch.zeros(())

    def update(self, rate: float, *, measure: bool) -> Tensor | None:
        if self.options.asynchronous:
            self._serve(rate)
            return None
        norm = super().update(rate, measure=measure)
        self._version += 1
        self._answer(self.workers)
        return norm

    def exchange(self) -> None:
        """Add the gradients in the order of ranks, so that every run comes to the same bits."""
        for worker in self.workers:
            dist.recv(self._received if worker else self._sum, worker)
            if worker:
                torch._foreach_add_(self._total[: len(self._held)], self._incoming[: len(self._held)])
        self._accept(self._total, 0)

    def gradient_norm(self) -> Tensor:
        return self.norm_over_servers(super().gradient_norm())

    def _accept(self, message: list[Tensor], worker: int) -> None:
        for parameter, gradient in zip(self._held.values(), message, strict=False):
            parameter.grad = gradient
        if worker == 0:
            for buffer, value in zip(self._buffers.values(), message[len(self._held) :], strict=True):
                buffer.copy_(value)

    def _serve(self, rate: float) -> None:
        """Take gradients from whoever comes, until all workers have done this step; fast ones may be ahead."""
        self._steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        while min(self._pushed) < self._steps:
            worker = dist.recv(self._received)
            self._accept(self._incoming, worker)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self._count(worker)
            self._answer([worker])

    def _count(self, worker: int) -> None:
        staleness = self._version - self._taken[worker]
        self._staleness[staleness] += 1
        self.recent.append(staleness)
        self._version += 1
        self._pushed[worker] += 1

    def _answer(self, workers: Sequence[int]) -> None:
        """Send what this server holds."""
        sent: list[Any] = [dist.isend(self._sent, worker) for worker in workers]
        for worker, work in zip(workers, sent, strict=True):
            work.wait()
            self.bytes_sent += self._sent.nbytes
            self._taken[worker] = self._version

    def align(self) -> None:
        if self.options.asynchronous:
            self._answer(self.workers)

    def proof(self) -> dict[str, Any]:
        by_staleness = {str(staleness): count for staleness, count in sorted(self._staleness.items())}
        return {
            **super().proof(),
            "parameter_bytes": placed(self._held.values()),
            "parameters": list(self._held),
            "updates": self._version,
            **({"updates_by_staleness": by_staleness} if self.options.asynchronous else {}),
        }


def _outline(value: nn.Parameter) -> nn.Parameter:
    return nn.Parameter(torch.empty_like(value, device="meta"), requires_grad=False)
