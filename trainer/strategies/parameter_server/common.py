"""Common base of workers and servers: who is who, and the optimizer's state as one."""

from abc import abstractmethod
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from torchyard.recipe.strategies import ParameterServer
from trainer.data.sampler import BatchShares
from trainer.distributed.collectives import all_reduce_sum
from trainer.distributed.world import World
from trainer.strategies.base import Strategy, TrainingTask

CPU = torch.device("cpu")


class ParameterServerStrategy(Strategy):
    """One side of the exchange. Every rank's optimizer lists all parameters in the model's order; those of servers
    have the state, each of its own shard. As a whole it is that of a model trained by one process.
    """

    options: ParameterServer

    def __init__(self, options: ParameterServer, world: World) -> None:
        super().__init__(options, world)
        self.workers = range(world.size - options.servers)
        self.servers = range(world.size - options.servers, world.size)
        #: Of each update since the last report: updates done between taking the parameters and sending the gradient.
        self.recent: list[int] = []

    @property
    def shares(self) -> BatchShares:
        return BatchShares(index=self.world.rank % len(self.workers), count=len(self.workers))

    @property
    def device_count(self) -> int:
        return len(self.workers)

    def prepare(self, model: nn.Module, task: TrainingTask) -> None:
        super().prepare(model, task)
        self.optimizer.register_state_dict_post_hook(self._whole)
        self.optimizer.register_load_state_dict_pre_hook(self._own_state)

    def _whole(self, optimizer: Optimizer, state: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002 (a hook of torch)
        """Bring the servers' states to rank 0, which writes checkpoints; all ranks call `state_dict` together."""
        if self.world.rank in self.servers:
            dist.send_object_list([state["state"]], dst=0, device=CPU)
        elif self.world.leads:
            merged = [each for server in self.servers for each in self._state_of(server).items()]
            state["state"] = dict(sorted(merged))
        return state

    def _state_of(self, server: int) -> dict[int, Any]:
        received: list[Any] = [None]
        dist.recv_object_list(received, src=server, device=CPU)
        state: dict[int, Any] = received[0]
        return state

    def _own_state(self, optimizer: Optimizer, state: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002 (a hook of torch)
        """Keep of a whole state what this rank steps."""
        return {**state, "state": {index: each for index, each in state["state"].items() if index in self.stepped}}

    @property
    @abstractmethod
    def stepped(self) -> set[int]:
        """Numbers of the parameters, in the optimizer's order, that this rank steps."""

    def norm_over_servers(self, own: Tensor) -> Tensor:
        """Return the 2-norm of all gradients from that of each rank's shard; all ranks call it."""
        return all_reduce_sum(own**2).sqrt()

    def measures(self) -> dict[str, float]:
        if not self.options.asynchronous:
            return {}
        own = torch.zeros(2 + len(self.servers), dtype=torch.float64)
        if self.recent:
            own[:2] = torch.tensor([sum(self.recent), len(self.recent)])
            own[2 + self.world.rank - self.servers.start] = max(self.recent)
        self.recent.clear()
        total, updates, *most = all_reduce_sum(own).tolist()
        return {"staleness/mean": total / max(updates, 1), "staleness/max": max(most)}

    def proof(self) -> dict[str, Any]:
        state = [each for values in self.optimizer.state.values() for each in values.values()]
        return {
            **super().proof(),
            "role": "server" if self.world.rank in self.servers else "worker",
            "workers": len(self.workers),
            "servers": len(self.servers),
            "asynchronous": self.options.asynchronous,
            "optimizer_bytes": sum(each.nbytes for each in state if isinstance(each, Tensor)),
        }
