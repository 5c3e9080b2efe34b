import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import plane
from tests.support.live import Live
from torchyard.client.client import Client


@pytest.fixture
def database_url(database_folder: Path, migrated_file: Path) -> str:
    """One kind of database is enough here: client and commands know none, and the API is tested on both."""
    return f"sqlite:///{shutil.copy(migrated_file, database_folder / 'test.db')}"


@pytest.fixture
def data_plane(live_service: Live) -> Iterator[plane.Plane]:
    """A running service with a node."""
    with plane.plane(live_service) as found:
        yield found


@pytest.fixture
def client(live_service: Live) -> Iterator[Client]:
    """The administrator's client."""
    with Client(live_service.url, live_service.admin_token) as made:
        yield made


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder of code with something to leave out."""
    folder = tmp_path / "code"
    (folder / "data").mkdir(parents=True)
    (folder / "train.py").write_text("print('training')\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "empty").touch()
    (folder / "data" / "big").write_text("x" * 1000)
    (folder / ".gitignore").write_text("data/\n")
    return folder
