"""The result page in front of the person: by a real browser command, or said why not."""

import subprocess
import sys
from pathlib import Path

import pytest

from torchyard.cli import bench
from torchyard.exceptions import SpecError


def shown(folder: Path, *, opens: bool, display: str, code: int = 0) -> tuple[str, str]:
    """The address that the browser was started with, and what the person is told."""
    browser, seen = folder / "browser", folder / "seen"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\nexit {code}\n')
    browser.chmod(0o755)
    program = (
        f"from pathlib import Path; from torchyard.cli import bench; bench._show(Path('/x/y.html'), opens={opens})"
    )
    environment = {"DISPLAY": display, "BROWSER": f"{browser} %s", "PATH": "/nowhere"}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return seen.read_text().strip() if seen.exists() else "", ended.stderr


def test_the_page_is_opened_where_there_is_a_display(tmp_path: Path) -> None:
    assert shown(tmp_path, opens=True, display=":9") == ("file:///x/y.html", "")


def test_no_browser_takes_a_terminal_and_none_is_started_unasked(tmp_path: Path) -> None:
    assert shown(tmp_path, opens=False, display=":9") == ("", "")
    address, told = shown(tmp_path, opens=True, display="")
    assert not address
    assert "no display here: copy the page to where you have a browser" in told


def test_a_browser_that_fails_is_told(tmp_path: Path) -> None:
    assert "no browser could be started: open the page by hand" in shown(tmp_path, opens=True, display=":9", code=1)[1]


@pytest.mark.parametrize(
    ("model", "data", "offline", "message"),
    [
        ("mlp", None, False, "--model and --data go together"),
        (None, None, True, "needs no download: leave it out"),
        ("mlp", "voc", False, "take model: deeplabv3_resnet101"),
        ("[", "voc", False, "give a name, or"),
        ("mlp", "vocs", False, "Did you mean voc?"),
    ],
)
def test_what_no_job_could_compare_is_refused(model: str | None, data: str | None, offline: bool, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        bench._check(model, data, offline=offline)
    assert message in str(refused.value)


@pytest.mark.parametrize(("model", "data"), [("deeplabv3_resnet101", "voc"), ("{name: mlp, hidden: [8]}", "digits")])
def test_what_a_job_could_compare_is_taken(model: str, data: str) -> None:
    bench._check(model, data, offline=False)
