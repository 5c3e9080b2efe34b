import pytest

from torchyard.cli import extras


@pytest.mark.parametrize("extra", ["service", "worker", "trainer", "box"])
def test_nothing_is_said_where_the_extra_is_here(extra: str) -> None:
    extras.require("command", extra)
