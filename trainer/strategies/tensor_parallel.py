"""Tensor parallelism: the matrices of linear layers lie in pieces on all ranks, which see the same samples.

DTensor plans after Megatron-LM (Shoeybi et al. 2019;
https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html). `splitting.py` says which layers are split;
convolutions and the rest are replicated: every rank computes them whole. So it pays where linear layers are most of
the model, on ranks with fast links, for activations are exchanged within each forward and backward. Never run on more
than one GPU.
"""

from torchyard.recipe.strategies import TensorParallel
from trainer.distributed.world import World
from trainer.strategies.mesh import MeshStrategy


class TensorParallelStrategy(MeshStrategy):
    """One process per device; all of them are one tensor group, and one share of the samples."""

    options: TensorParallel

    def __init__(self, options: TensorParallel, world: World) -> None:
        super().__init__(options, world, world.size)
