"""Progress of scripts that report nothing, from what the real packages print into a log."""

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.user import User
from torchyard.api import Progress, ProgressSource
from worker.progress.run import ProgressParser, RunProgress

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(200)]

OUTER = """
from tqdm import tqdm
for epoch in tqdm(range(4), desc="Epochs"):
    for batch in tqdm(range(50), desc=f"Epoch {epoch}", leave=False, mininterval=0):
        pass
"""
INNER = """
from tqdm import tqdm
for epoch in range(3):
    for batch in tqdm(range(50), mininterval=0):
        pass
"""
NUMBERED = """
from tqdm import tqdm
for epoch in range(3):
    print(f"Epoch {epoch + 1}/3", flush=True)
    for batch in tqdm(range(50), mininterval=0):
        pass
"""
RICH = """
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
console = Console(force_terminal=True, width=100)
with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=console) as bars:
    task = bars.add_task("Training", total=80)
    for step in range(80):
        bars.advance(task)
        bars.refresh()
"""
WHOLE = """
import time
from tqdm import tqdm
for step in tqdm(range(300)):
    time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("script", "place"),
    [
        pytest.param(WHOLE, (300, 300), id="tqdm"),
        pytest.param(OUTER, (4, 4), id="tqdm-outer"),
        pytest.param(INNER, None, id="tqdm-inner"),
        pytest.param(NUMBERED, (150, 150), id="tqdm-epochs"),
        pytest.param(RICH, (80, 80), id="rich"),
    ],
)
def test_bars_are_understood_to_their_end(environment: Path, script: str, place: tuple[int, int] | None) -> None:
    python = str(environment / "bin" / "python")
    printed = subprocess.run([python, "-c", script], capture_output=True, check=True, timeout=60)
    lines = lines_of((printed.stdout if script is RICH else printed.stderr).decode())
    if script is NUMBERED:  # two streams into one log: each epoch's line before its bar
        bars = [line for line in lines if "50 [" in line]
        starts = [place for place, line in enumerate(bars) if " 0/50" in line]
        lines = [line for place, line in enumerate(bars)]
        for number, at in reversed(list(enumerate(starts, 1))):
            lines.insert(at, f"Epoch {number}/3")
    parser = ProgressParser()
    found: list[RunProgress] = []
    for line in lines:
        parser.feed([line])
        found += [] if (now := parser.progress()) is None else [now]
    assert place is None or found[-1][1:] == place
    assert place is not None or parser.progress() is None


def lines_of(log: str) -> list[str]:
    """Lines of a log, each state of a bar as one."""
    return re.split(r"[\r\n]", log)


def places(lines: Sequence[str], epochs: int | None = None) -> list[tuple[int, int]]:
    """Places in the run's steps that are told while the lines come, each once."""
    parser = ProgressParser(epochs)
    found = dict[tuple[int, int], None]()
    for line in lines:
        parser.feed([line])
        found |= {} if (now := parser.progress()) is None else {now[1:]: None}
    return list(found)


def test_a_job_with_a_plain_bar_shows_its_progress(user: User) -> None:
    user.folder.joinpath("train.py").write_text(WHOLE)
    job = user.submit("python", "train.py")
    user.succeeds(job)
    progress: Progress | None = None
    deadline = time.monotonic() + 30
    while progress is None and time.monotonic() < deadline:
        progress = user.yard.client.job(job.id).progress
    assert progress is not None
    assert (progress.source, progress.step, progress.total_steps) == (ProgressSource.PRINTED, 300, 300)
