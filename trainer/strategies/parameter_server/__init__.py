"""A parameter server: workers compute gradients, servers hold the parameters and the optimizer's state.

After "Scaling Distributed Machine Learning with the Parameter Server" (Li et al., OSDI 2014); asynchronous as in
"Large Scale Distributed Deep Networks" (Dean et al., NeurIPS 2012), where workers compute on stale parameters. Ranks
0 to n - 1 are the workers, the last m ranks the servers: processes on the CPU, which talk to workers by send and
receive over gloo (https://docs.pytorch.org/docs/stable/distributed.html, point-to-point communication).

Slow by design: for parameters of P bytes each worker sends P and receives P in a step, and each of m servers passes n
times P/m both ways, while the workers wait; ring and all-reduce move less than 2 P per rank, and DDP hides that behind
the backward pass. On GPUs every byte also crosses to host memory. A worker keeps two buffers of P there, a server
two of its shard.

What a server holds is whole parameters, spread by size. A parameter without a gradient is refused. Buffers (batch
statistics) are worker 0's, handed on with the parameters by the first server.

Asynchronously, a server takes each worker's gradient, the mean over that worker's own samples, as a step of its own: n
of them in the time of one. All workers do the same number of passes, and meet for reports, evaluations and checkpoints;
in between, fast ones run ahead. No two such runs are alike. A server that takes gradients from anybody notices a dead
worker only at the recipe's time-out; a launcher is quicker.

Not run on two GPUs so far.
"""

from torchyard.recipe.strategies import ParameterServer
from trainer.distributed.world import World
from trainer.strategies.base import Strategy
from trainer.strategies.parameter_server.server import ServerStrategy
from trainer.strategies.parameter_server.worker import WorkerStrategy

__all__ = ["parameter_server"]


def parameter_server(options: ParameterServer, world: World) -> Strategy:
    """Return the strategy of this rank's side; raises RecipeError when there are no workers."""
    serves = world.rank >= world.size - options.servers
    return ServerStrategy(options, world) if serves else WorkerStrategy(options, world)
