"""``python -m trainer recipe.json``, or under ``torchrun``: trains a recipe.

The file is a recipe or a job spec that holds one, as JSON or YAML. Off the queue, checkpoints go to
``./checkpoints`` and metrics are only printed.
"""

import argparse
import atexit
import logging
import os
import sys
from pathlib import Path
from typing import NoReturn

import yaml
from pydantic import ValidationError

import torchyard
from torchyard.recipe import Recipe
from trainer.distributed import joined
from trainer.exceptions import RecipeError
from trainer.loop import Training, build


def read_recipe(path: Path) -> Recipe:
    """The recipe in a file; raises RecipeError with one line for each mistake."""
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
    parser = argparse.ArgumentParser(prog="python -m trainer", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("recipe", type=Path, help="recipe or job spec, JSON or YAML")
    recipe = read_recipe(parser.parse_args(arguments).recipe)
    logging.basicConfig(format="%(message)s", level=logging.INFO, stream=sys.stdout)
    with joined() as world:
        training = Training(build(recipe, world))
        if (folder := torchyard.restore()) is not None:
            training.resume(folder)
        training.run()


def leave() -> NoReturn:
    """Ends this process with code 0, without the interpreter's own last steps.

    DDP loads `torch._dynamo`, which keeps gloo's threads alive past `destroy_process_group` (torch 2.14); while the
    interpreter takes itself apart they now and then abort the process ("terminate called without an active exception").
    """
    atexit._run_exitfuncs()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    try:
        main()
    except SystemExit as stopped:
        if stopped.code:
            raise
    leave()
