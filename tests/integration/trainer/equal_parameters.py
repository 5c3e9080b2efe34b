"""Run by two ranks: trains a recipe and writes each rank's weights, random draw and scores."""

import json
import sys
from pathlib import Path

import torch

from trainer.__main__ import read_recipe
from trainer.distributed import joined
from trainer.loop import Training, build


def main() -> None:
    recipe = read_recipe(Path(sys.argv[1]))
    with joined() as world:
        parts = build(recipe, world)
        drawn = float(torch.rand(()))
        Training(parts).run()
        model = parts.strategy.unwrap(parts.model)
        torch.save(model.state_dict(), f"weights-{world.rank}.pt")
        Path(f"drawn-{world.rank}.json").write_text(json.dumps(drawn))


if __name__ == "__main__":
    main()
