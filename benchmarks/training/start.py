"""From the start of torchrun to the end of the first step, in parts. Its own imports come late, to be timed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

#: What a rank of the trainer imports, with and without a search for garbage in it meanwhile.
IMPORTS = {"imports_alone": "import trainer.__main__", "imports_alone,_collecting": "import trainer.command"}


def main() -> None:
    marks = [("launcher", time.time_ns())]

    def mark(name: str) -> None:
        marks.append((name, time.time_ns()))

    import trainer.__main__  # noqa: F401 (as `python -m trainer` begins)
    from torchyard.recipe import Recipe
    from trainer.distributed.process_group import joined
    from trainer.loop.components import build
    from trainer.loop.training import Training

    mark("imports")
    recipe = Recipe.model_validate({"data": "digits", "epochs": 1})
    with joined(recipe.strategy) as world:
        mark("rendezvous")
        parts = build(recipe, world)
        mark("data_and_model")
        training = Training(parts)
        batch = next(iter(training.batches(0)))
        parts.strategy.backward(batch)
        parts.strategy.update(0.01, measure=False)
        mark("first_step")
    if world.leads:
        parts_of_it = split(marks, int(os.environ["BENCH_BEGAN_NS"]))
        alone = {name: process_ms(code) for name, code in IMPORTS.items()}
        Path(sys.argv[1]).write_text(json.dumps(parts_of_it | alone))


def process_ms(code: str) -> float:
    """Milliseconds of a process from its start to its end, which looks for garbage as well."""
    began = time.time_ns()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.time_ns() - began) / 1e6


def split(marks: list[tuple[str, int]], began: int) -> dict[str, float]:
    """Milliseconds of each part, and of all."""
    parts, before = {}, began
    for name, at in marks:
        parts[name] = (at - before) / 1e6
        before = at
    return {**parts, "all": (before - began) / 1e6}


if __name__ == "__main__":
    main()
