"""What the compatibility tests share: an environment with real frameworks and trackers, and a running stack."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import processes, stack
from tests.support.user import User

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def environment() -> Path:
    """The user's environment, which holds nothing of ours; ``make .setup/compat`` makes it."""
    folder = ROOT / ".venv-compat"
    assert (folder / "bin" / "python").exists(), f"{folder} is missing: run `make .setup/compat`"
    return folder


@pytest.fixture(scope="package")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stack.Stack]:
    """One stack with two CPU slots for all tests here."""
    with processes.unmarked(), stack.running(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def user(yard: stack.Stack, environment: Path, tmp_path: Path) -> User:
    """A user with an empty folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    return User(yard, environment, folder)
