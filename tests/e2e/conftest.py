"""The running stack that the end-to-end tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import processes, stack

SCRIPTS = Path(__file__).parent / "scripts"


@pytest.fixture(scope="package")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stack.Stack]:
    """One stack with two CPU slots for all tests here."""
    with processes.unmarked(), stack.running(tmp_path_factory.mktemp("home")) as running:
        yield running
