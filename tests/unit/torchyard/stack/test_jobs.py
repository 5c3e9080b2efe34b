from collections.abc import Sequence
from types import SimpleNamespace
from unittest.mock import create_autospec

from torchyard.client.client import Client
from torchyard.stack import jobs


def test_a_job_that_changes_its_state_meanwhile_counts_once() -> None:
    """By the third question it runs: asked for one state after the other, it was in no answer."""
    client, states = create_autospec(Client, instance=True), ["starting", "starting", "running", "running", "running"]

    def found(state: str | Sequence[str]) -> list[SimpleNamespace]:
        wanted = [state] if isinstance(state, str) else state
        return [SimpleNamespace(id="moved")] if states.pop(0) in wanted else []

    client.jobs.side_effect = found
    assert jobs.running(client) == 1
