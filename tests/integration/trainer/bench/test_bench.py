"""The comparison as a person starts it, in small."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import ranks
from torchyard.recipe import Recipe
from trainer.bench import plan
from trainer.bench.__main__ import main
from trainer.bench.rank import measure
from trainer.distributed import joined

TINY = {"model": {"name": "mlp", "hidden": [8]}, "data": {"name": "synthetic", "samples": 64, "shape": [5]}}
PARAMETER_BYTES = 4 * (5 * 8 + 8 + 8 * 10 + 10)


def timed(given: dict[str, Any]) -> dict[str, Any] | None:
    with joined(Recipe.model_validate(given["recipe"]).strategy) as world:
        return measure(given, world)


@pytest.mark.parametrize("strategy", plan.STRATEGIES)
def test_every_strategy_is_timed_at_the_same_effective_batch(strategy: str) -> None:
    case = plan.case(Recipe.model_validate(TINY), strategy, 2, 16)
    given = {"recipe": case.recipe.model_dump(mode="json"), "warm_up": 1, "steps": 3, "repeats": 2}
    first, *others = ranks.run(timed, case.processes, given)
    assert first is not None
    assert not any(others)
    assert first["samples"] == 3 * 16
    assert len(first["seconds"]) == 2
    assert len(first["bytes_sent"]) == case.processes
    if strategy != "dp":  # what moves between devices of one process is no message
        assert max(first["bytes_sent"]) >= PARAMETER_BYTES


def test_the_command_writes_table_and_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(TINY))
    sizes = ["--batch", "16", "--steps", "1", "--repeats", "1", "--warm-up", "0"]
    main(["--recipe", str(recipe), "--strategies", "ddp", *sizes, "--out", str(tmp_path / "out")])
    with (tmp_path / "out" / "strategies.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["strategy"], row["devices"]) for row in rows] == [("single", "1"), ("ddp", "2")]
    assert int(rows[1]["bytes_per_rank"]) >= PARAMETER_BYTES
    assert (tmp_path / "out" / "strategies.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "out" / "strategies.svg").read_text()
    shown = capsys.readouterr().out
    assert "speed-up" in shown
    assert "DeepLabV3-ResNet101" in shown
