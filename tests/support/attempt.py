"""An attempt folder as the worker makes it, and the environment that leads there."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from torchyard.injob import control, files, layout, metrics, place


class AttemptFolder:
    """What the job's ranks see, and what they have written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in (layout.METRICS, layout.MARKS, layout.CHECKPOINTS, layout.OUTPUT, layout.LOGS):
            (root / name).mkdir(parents=True, exist_ok=True)

    def environment(
        self, *, restore: Path | None = None, checkpoint_every: float | None = None, keep_best: str | None = None
    ) -> dict[str, str]:
        given = {layout.ATTEMPT_DIR: str(self.root), layout.OUTPUT_DIR: str(self.root / layout.OUTPUT)}
        if restore is not None:
            given[layout.RESTORE_DIR] = str(restore)
        if checkpoint_every is not None:
            given[layout.CHECKPOINT_EVERY] = str(checkpoint_every)
        if keep_best is not None:
            given[layout.KEEP_BEST] = keep_best
        return given

    def ask(self, action: str, serial: int = 1) -> None:
        files.write_json(str(self.root / layout.CONTROL), {"action": action, "serial": serial, "reason": "cancel"})

    def records(self) -> list[dict[str, Any]]:
        """All metric lines, by file and line."""
        files = sorted((self.root / layout.METRICS).glob("*.jsonl"))
        lines = [line for file in files for line in file.read_text().splitlines()]
        return [json.loads(line) for line in lines]

    def series(self, name: str) -> dict[int, Any]:
        """The values of one metric by step."""
        return {record["step"]: record["v"][name] for record in self.records() if name in record["v"]}

    def marks(self) -> set[str]:
        return {mark.name for mark in (self.root / layout.MARKS).iterdir()}

    def checkpoints(self) -> list[Path]:
        return sorted((self.root / layout.CHECKPOINTS).iterdir())

    def outcome(self) -> Any:
        return files.read_json(str(self.root / layout.OUTCOME))


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the in-job part look at its environment anew, as a fresh process does."""
    for name in (layout.ATTEMPT_DIR, layout.RESTORE_DIR, layout.CHECKPOINT_EVERY, layout.KEEP_BEST, "RANK"):
        monkeypatch.delenv(name, raising=False)
    place.current.cache_clear()
    monkeypatch.setattr(metrics, "_recorder", None)
    monkeypatch.setattr(metrics, "_looked", False)
    monkeypatch.setattr(control, "_agreement", None)


def entered(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Iterator[AttemptFolder]:
    """This process as the attempt's only rank; ends the flush thread afterwards."""
    forget(monkeypatch)
    for name, value in folder.environment(**options).items():
        monkeypatch.setenv(name, value)
    yield folder
    if metrics._recorder is not None:
        metrics._recorder.close()
    place.current.cache_clear()


def clean_environment(**extra: str) -> dict[str, str]:
    """This environment without anything of TorchYard's or of a launcher's, for a child process."""
    ours = ("TORCHYARD_HOME", layout.ATTEMPT_DIR, layout.RESTORE_DIR, layout.CHECKPOINT_EVERY, "RANK", "WORLD_SIZE")
    return {name: value for name, value in os.environ.items() if name not in ours} | extra
