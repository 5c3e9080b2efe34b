"""What the compatibility tests share: an environment with real frameworks and trackers, and a running stack."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.compat.trainings import ONE_THREAD, Training, Undisturbed
from tests.support import processes, stack
from tests.support.user import User
from torchyard.api import Job

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


@pytest.fixture(scope="module")
def undisturbed(yard: stack.Stack, environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """A job that trains and is never stopped, and its user: one of each training."""

    @cache
    def run(training: Training) -> tuple[User, Job]:
        user = User(yard, environment, tmp_path_factory.mktemp("undisturbed"))
        words = ("python", user.copy(training.script), *training.arguments)
        job = user.submit(*words, launcher=training.launcher.value, resources={"gpus": 2}, env=ONE_THREAD)
        return user, user.succeeds(job)

    return run
