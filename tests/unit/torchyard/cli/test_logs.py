"""Logs of several ranks that are followed at once."""

from collections.abc import Iterator
from typing import Any

import pytest

from torchyard.cli import logs
from torchyard.client.log_stream import LogChunk
from torchyard.exceptions import UnreachableError


class Ranks:
    """A client whose service is away when all but rank 0 are followed."""

    def follow_logs(self, _job: str, *, rank: int, **_: Any) -> Iterator[LogChunk]:
        if rank:
            raise UnreachableError("the service does not answer")
        yield LogChunk(attempt=1, offset=0, next=6, text="step 1\n")


def test_a_rank_that_breaks_off_is_told_beside_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    client: Any = Ranks()
    view = logs._View(raw=False, pattern=None, tail=None, since=None, follow=True)
    logs._print_ranks(client, "7", [0, 1], None, view)
    out, err = capsys.readouterr()
    assert out == "[0] step 1\n"
    assert err == "warning: the log of rank 1 breaks off: the service does not answer\n"
