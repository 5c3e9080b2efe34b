from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import attempt
from tests.support.attempt import AttemptFolder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AttemptFolder]:
    """The test's own process is the attempt's only rank."""
    yield from attempt.entered(AttemptFolder(tmp_path / "attempt"), monkeypatch)


@pytest.fixture
def off_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    attempt.forget(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path
