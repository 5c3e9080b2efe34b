"""Trains a recipe: ``torchrun --nproc-per-node=2 -m trainer recipe.yaml``, or without torchrun as below.

The file is a recipe or a job spec that holds one, as JSON or YAML. Off the queue, checkpoints go to
``./checkpoints`` and metrics are only printed.

One process::

    python -m trainer recipe.yaml

Two ranks of this machine, for notebooks (``!python -m trainer …``) and where torchrun is not at hand::

    python -m trainer recipe.yaml --nproc 2

Single ranks by hand: every rank is told its number, how many there are, and where they meet. Over TCP rank 0 listens
at the address; a file must lie where all ranks can write, and must not exist yet. Where several ranks share a machine,
each is also told its number there, which is that of its GPU::

    python -m trainer recipe.yaml --rendezvous tcp://node0:29400 --world-size 2 --rank 0
    python -m trainer recipe.yaml --rendezvous tcp://node0:29400 --world-size 2 --rank 1

    python -m trainer recipe.yaml --rendezvous file:///tmp/r --world-size 2 --rank 0 --local-world-size 2 --local-rank 0
    python -m trainer recipe.yaml --rendezvous file:///tmp/r --world-size 2 --rank 1 --local-world-size 2 --local-rank 1

``env://`` (the default) reads MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE and LOCAL_RANK, which launchers set. The
recipe's `backend` and `timeout` count for all of them. Ranks started by hand on several nodes talk over the interface
that leads to MASTER_ADDR; GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME name another.
"""

import argparse
import os
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from pydantic import ValidationError

from torchyard.recipe import Recipe
from trainer.distributed import spawn
from trainer.exceptions import RecipeError
from trainer.run import run


def read_recipe(path: Path) -> Recipe:
    """Return the recipe in a file; raises RecipeError with one line for each mistake."""
    try:
        content = yaml.safe_load(path.read_text())
        content = content.get("recipe", content) if isinstance(content, dict) else content
        return Recipe.model_validate(content)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, mistake['loc'])) or 'recipe'}: {mistake['msg']}" for mistake in error.errors()]
        raise RecipeError("\n".join([f"{path} is no recipe:", *lines])) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecipeError(f"{path} cannot be read: {error}") from error


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    recipe = read_recipe(options.recipe)
    if options.nproc is not None:
        _spawn(options.nproc, recipe, options.rendezvous)
    else:
        os.environ.update(_place(options))
        run(recipe, options.rendezvous)


def _spawn(ranks: int, recipe: Recipe, url: str | None) -> None:
    with tempfile.TemporaryDirectory(prefix="torchyard-") as folder:
        if recipe.rendezvous == "file":
            url = url or f"file://{folder}/rendezvous"
        spawn.run(ranks, run, recipe, url)


def _place(options: argparse.Namespace) -> dict[str, str]:
    """Return the variables that a launcher would have set for this rank; raises RecipeError for half of them."""
    given = {"RANK": options.rank, "WORLD_SIZE": options.world_size}
    local = {"LOCAL_RANK": options.local_rank, "LOCAL_WORLD_SIZE": options.local_world_size}
    for options_ in (given, local):
        _check_number(options_)
    if options.rank is None:
        return {}
    address = urlsplit(options.rendezvous or "")
    met = {"MASTER_ADDR": address.hostname, "MASTER_PORT": address.port} if address.scheme == "tcp" else {}
    alone = {"LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1} if options.local_rank is None else local
    return {name: str(value) for name, value in (given | alone | met).items()}


def _check_number(given: dict[str, int | None]) -> None:
    names = [f"--{name.lower().replace('_', '-')}" for name in given]
    number, count = given.values()
    if (number is None) != (count is None):
        raise RecipeError(f"{names[0]} and {names[1]} go together: give both, or neither")
    if number is not None and count is not None and not 0 <= number < count:
        raise RecipeError(f"{names[0]} {number} must be at least 0 and less than {names[1]} {count}")


def _parser() -> argparse.ArgumentParser:
    description, _, manual = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m trainer",
        description=description,
        epilog=manual,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("recipe", type=Path, help="recipe or job spec, JSON or YAML")
    parser.add_argument("--nproc", type=int, help="start so many ranks here, without torchrun")
    parser.add_argument("--rendezvous", metavar="URL", help="env://, tcp://host:port or file:///fresh/path")
    parser.add_argument("--rank", type=int, help="number of this rank")
    parser.add_argument("--world-size", type=int, help="number of all ranks")
    parser.add_argument("--local-rank", type=int, help="number of this rank on its machine, and of its GPU")
    parser.add_argument("--local-world-size", type=int, help="number of all ranks on this machine")
    return parser
