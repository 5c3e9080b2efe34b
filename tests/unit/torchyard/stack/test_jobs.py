from types import SimpleNamespace
from unittest.mock import create_autospec

from torchyard.client.client import Client
from torchyard.stack import jobs


def test_a_job_that_changes_its_state_between_two_questions_counts_once() -> None:
    client = create_autospec(Client, instance=True)
    client.jobs.side_effect = lambda state: [SimpleNamespace(id="moved")] if state in {"running", "starting"} else []
    assert jobs.running(client) == 1
    assert client.jobs.call_count > 1
