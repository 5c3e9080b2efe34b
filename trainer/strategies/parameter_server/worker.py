"""A worker: computes gradients on its replica, sends them to the servers and takes parameters from them."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.data.loading import Batch
from trainer.exceptions import RecipeError
from trainer.strategies.parameter_server.common import CPU, ParameterServerStrategy
from trainer.strategies.parameter_server.sharding import FlatLayout, Shard, shards


class ServerConnection:
    """Messages between this worker and one server: gradients there, parameters back, buffers both ways."""

    def __init__(self, server: int, shard: Shard, device: torch.device) -> None:
        self._server = server
        self._own_state = shard
        self._layout = FlatLayout(shard.tensors)
        self._packed = self._layout.buffer(device)
        self._received = self._layout.buffer(CPU)

    def expect(self) -> Any:
        """Begin to receive parameters."""
        return dist.irecv(self._received, self._server)

    @torch.no_grad()
    def push(self) -> tuple[Any, Tensor]:
        """Begin to send the gradients; the message is to be kept until that is done."""
        views = self._layout.views(self._packed)
        torch._foreach_copy_(views, [*self._gradients(), *self._own_state.buffers.values()])
        message = self._packed.to(CPU)
        return dist.isend(message, self._server), message

    def _gradients(self) -> list[Tensor]:
        lacking = [name for name, parameter in self._own_state.parameters.items() if parameter.grad is None]
        if lacking:
            raise RecipeError(
                f"{', '.join(lacking)} got no gradient: let forward use it, or set its requires_grad to False; or take "
                "strategy: {name: ddp, find_unused_parameters: true}"
            )
        return [parameter.grad for parameter in self._own_state.parameters.values() if parameter.grad is not None]

    @torch.no_grad()
    def take(self) -> None:
        """Put what was received into the replica."""
        received = self._received.to(self._packed.device)
        torch._foreach_copy_(self._own_state.tensors, self._layout.views(received))


class WorkerStrategy(ParameterServerStrategy):
    """A rank with a replica of the model on its device."""

    def wrap(self, model: nn.Module) -> nn.Module:
        model.to(self.world.device)
        self._routes = [
            ServerConnection(server, shard, self.world.device)
            for server, shard in zip(self.servers, shards(model, len(self.servers)), strict=True)
        ]
        self._samples = 0
        return model

    @property
    def stepped(self) -> set[int]:
        return set()

    def weight(self, step_size: int) -> float:
        # Asynchronously a worker's gradient is a step of its own: divided by its own samples once they are known.
        return 1.0 if self.options.asynchronous else super().weight(step_size)

    def backward(self, batch: Batch) -> Tensor:
        self._samples += batch.count
        return super().backward(batch)

    def update(self, rate: float, *, measure: bool) -> Tensor | None:
        for group in self.optimizer.param_groups:  # for checkpoints
            group["lr"] = rate
        measure = measure or self.task.clip_norm is not None
        norm = self._alone(measure) if self.options.asynchronous else None
        # A server may answer while another one still waits: who sends must be ready to receive.
        expected = [route.expect() for route in self._routes]
        pushed = [route.push() for route in self._routes]
        for work, message in pushed:
            work.wait()
            self.bytes_sent += message.nbytes
        if measure and norm is None:
            norm = self.norm_over_servers(torch.zeros(()))
        self._take(expected)
        self.optimizer.zero_grad()
        self._samples = 0
        return norm

    def _alone(self, measure: bool) -> Tensor | None:
        """Make the gradients the mean over this worker's own samples, and clip them."""
        gradients = [parameter.grad for parameter in self.parameters() if parameter.grad is not None]
        torch._foreach_div_(gradients, self._samples)
        norm = self.gradient_norm() if measure else None
        if norm is not None and self.task.clip_norm is not None:
            self.clip(self.task.clip_norm, norm)
        return norm

    def _take(self, expected: list[Any]) -> None:
        for work, route in zip(expected, self._routes, strict=True):
            work.wait()
            route.take()

    def align(self) -> None:
        if self.options.asynchronous:
            self._take([route.expect() for route in self._routes])
