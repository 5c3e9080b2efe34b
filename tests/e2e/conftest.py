"""The running stack that the end-to-end tests of one file share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import processes, stack

SCRIPTS = Path(__file__).parent / "scripts"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stack.Stack]:
    """One stack with two CPU slots for all tests of a file."""
    with processes.unmarked(), stack.running(tmp_path_factory.mktemp("home")) as running:
        yield running
