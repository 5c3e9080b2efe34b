"""The comparison as a person starts it, in small."""

import argparse
import csv
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.support import ranks
from torchyard.injob import layout
from torchyard.recipe import Recipe
from trainer.bench import plan
from trainer.bench.__main__ import main
from trainer.bench.rank import measure
from trainer.distributed.process_group import joined
from trainer.exceptions import DownloadError

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
    assert first["samples"] == [3 * 16] * 2
    assert len(first["seconds"]) == 2
    assert len(first["bytes_sent"]) == case.processes
    if strategy != "dp":  # what moves between devices of one process is no message
        assert max(first["bytes_sent"]) >= PARAMETER_BYTES


def forked(case: plan.BenchCase, options: argparse.Namespace) -> dict[str, Any]:
    """What a case comes to, without torchrun and its ranks' imports."""
    given = {"recipe": case.recipe.model_dump(mode="json"), "warm_up": options.warm_up, "steps": options.steps}
    environment = {layout.DEVICES: str(case.devices)}
    first, *_ = ranks.run(timed, case.processes, {**given, "repeats": options.repeats}, environment=environment)
    assert first is not None
    return first


def test_the_command_writes_table_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`tests/e2e/test_strategies.py` has it start them by torchrun."""
    monkeypatch.setattr("trainer.bench.__main__.measure", forked)
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(TINY))
    sizes = ["--batch", "16", "--steps", "1", "--repeats", "1", "--warm-up", "0"]
    main(["--recipe", str(recipe), "--strategies", "dp", *sizes, "--out", str(tmp_path / "out")])
    with (tmp_path / "out" / "strategies.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["strategy"], row["devices"]) for row in rows] == [("single", "1"), ("dp", "2")]
    assert (tmp_path / "out" / "strategies.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "out" / "strategies.svg").read_text()
    shown = capsys.readouterr().out
    assert "speed-up" in shown
    assert "DeepLabV3-ResNet101" in shown


def test_data_that_cannot_be_had_end_it_at_once_with_the_mends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # bound, and not listening: nobody answers there
        taken.bind(("127.0.0.1", 0))
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{taken.getsockname()[1]}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        data = json.dumps({"name": "voc", "root": str(tmp_path / "data")})
        with pytest.raises(DownloadError) as caught:
            main(["--model", "deeplabv3_resnet101", "--data", data, "--out", str(tmp_path / "out")])
    message = str(caught.value)
    assert "cannot be downloaded" in message
    assert "mend the network or the proxy (HTTPS_PROXY), or put the data into" in message
    assert "--data '{name: voc, root: FOLDER, download: false}'" in message
    assert "--offline" in message
    assert not (tmp_path / "out").exists()


def test_checkpoints_are_in_the_time_when_asked_for(tmp_path: Path) -> None:
    """Only the newest ones stay: those of twenty epochs of a large model would fill the disk."""
    case = plan.case(Recipe.model_validate(TINY), "ddp", 2, 8, per_device=True)
    given = {"recipe": case.recipe.model_dump(mode="json"), "warm_up": 1, "steps": 2, "repeats": 6, "saving": True}
    first, _ = ranks.run(timed, 2, given, cwd=tmp_path)
    assert first is not None
    assert first["samples"] == [2 * 2 * 8] * 6
    assert len(first["seconds"]) == 6
    left = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert left[-1] == "step-000000012"
    assert len(left) <= 3


def test_whole_epochs_are_segments() -> None:
    case = plan.case(Recipe.model_validate(TINY), "ddp", 2, 5, per_device=True)
    given = {"recipe": case.recipe.model_dump(mode="json"), "warm_up": 0, "steps": 1, "repeats": 1, "epochs": 3}
    first, _ = ranks.run(timed, 2, given)
    assert first is not None
    assert first["samples"] == [60] * 3  # 64 samples: six whole steps of twice five, the rest is left out
    assert len(first["seconds"]) == 3


def test_a_cut_accumulation_counts_what_it_takes() -> None:
    case = plan.case(Recipe.model_validate({**TINY, "accumulate": 3}), "single", 1, 8, per_device=True)
    given = {"recipe": case.recipe.model_dump(mode="json"), "warm_up": 0, "steps": 2, "repeats": 3}
    (first,) = ranks.run(timed, 1, given)
    assert first["samples"] == [48, 40, 40]  # 64 samples are eight passes: steps of three, three and two
