"""When something is expected, in words."""

from datetime import datetime, timedelta

import pytest

from torchyard.cli.queue import _in


@pytest.mark.parametrize(("seconds", "words"), [(-5, "now"), (40, "within a minute"), (7260, "in 2h1m (")])
def test_now_is_said_of_nothing_that_is_still_to_come(seconds: int, words: str) -> None:
    at = datetime.fromisoformat("2026-01-05T09:00:00+00:00")
    assert _in(at + timedelta(seconds=seconds), at).startswith(words)
