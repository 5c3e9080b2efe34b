from collections.abc import Iterator

import pytest

from tests.support.pair import Pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """What is executed and what is forked, with one server for the tests of a module."""
    made = Pair(tmp_path_factory.mktemp("warm"))
    yield made
    made.servers.close()
