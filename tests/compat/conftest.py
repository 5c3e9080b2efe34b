"""What the compatibility tests share: an environment with real frameworks and trackers, and a running stack."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.compat import by_hand as hands
from tests.compat.by_hand import ByHand
from tests.compat.trainings import Training, Undisturbed, checksum
from tests.support import environments, processes, stack
from tests.support.user import User

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with all frameworks and trackers, and nothing of ours; ``make .setup/compat`` makes it."""
    folder = ROOT / ".venv-compat"
    assert (folder / "bin" / "python").exists(), f"{folder} is missing: run `make .setup/compat`"
    packages = re.findall(r"^[\w-]+", Path(__file__).with_name("requirements.txt").read_text(), re.MULTILINE)
    return environments.only(tmp_path_factory.mktemp("user") / "venv", folder, *packages)


@pytest.fixture(scope="session")
def environment(installed: Path) -> Path:
    """The user's environment."""
    return installed


@pytest.fixture(scope="session")
def by_hand(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ByHand]:
    """What runs without the queue."""
    with processes.unmarked(), hands.serve(installed, tmp_path_factory.mktemp("hand")) as running:
        yield running


@pytest.fixture(scope="session")
def undisturbed(by_hand: ByHand, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """The weights to which trainings come by hand: one run of each."""

    @cache
    def run(training: Training) -> str:
        script, folder = training.script, tmp_path_factory.mktemp("undisturbed")
        load = [training.package, "torch._dynamo"]
        return checksum(by_hand(folder, script, *training.arguments, load=load, ranks=training.ranks))

    return run


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
