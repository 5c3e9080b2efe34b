from collections.abc import Iterator

import pytest

from tests.support.pair import Pair
from worker.launching import shims, warm


@pytest.fixture(scope="module")
def patience() -> Iterator[None]:
    """A server is used however long it takes to answer on a busy machine, and kept however little memory is free."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm, "FREE", 0.0)
        for module in (shims, warm):
            patch.setattr(module, "ANSWER_S", 60.0)
        yield


@pytest.fixture(scope="module")
def pair(patience: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """What is executed and what is forked, with one server for the tests of a module."""
    made = Pair(tmp_path_factory.mktemp("warm"))
    yield made
    made.servers.close()
