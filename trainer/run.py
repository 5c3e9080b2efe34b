"""The training of one rank, from the environment that a launcher has made."""

import logging
import os
import sys

import torchyard
from torchyard.recipe import Recipe
from trainer.distributed.process_group import joined
from trainer.distributed.rendezvous import rendezvous_for
from trainer.distributed.world import World
from trainer.loop.components import build
from trainer.loop.training import Training


def run(recipe: Recipe, url: str | None = None) -> None:
    """Train as the rank that the environment says; `url` is a rendezvous given by hand."""
    logging.basicConfig(format="%(message)s", level=logging.INFO, stream=sys.stdout)
    with joined(recipe.strategy, rendezvous_for(recipe, os.environ, url)) as world:
        train(recipe, world)


def train(recipe: Recipe, world: World) -> None:
    """Train; whatever uses the process group is gone when it returns."""
    Training(build(recipe, world), torchyard.restore()).run()
