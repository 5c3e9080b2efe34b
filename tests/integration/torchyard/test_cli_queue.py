"""``yard why``, ``queue`` and ``change`` against a running service."""

import sys
from collections.abc import Callable

import pytest
from sqlalchemy import insert

from service.db.models import Forecast
from tests.support import box
from tests.support.live import Live
from tests.support.wait import until
from torchyard import api
from torchyard.cli import main
from torchyard.client.client import Client

Yard = Callable[..., str]
SECOND = 1_000_000


@pytest.fixture
def yard(live_service: Live, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Yard:
    """Runs a command line in this process; what it printed."""
    monkeypatch.setenv("TORCHYARD_URL", live_service.url)

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["yard", *words])
        with pytest.raises(SystemExit) as ended:
            main.run()
        shown = capsys.readouterr()
        assert not ended.value.code, shown.err
        return shown.out or shown.err

    return run


def submit(client: Client, gpus: int, **fields: object) -> api.Job:
    return client.submit({"command": ["true"], "launcher": "none", "resources": {"gpus": gpus}, **fields})


def test_the_way_to_a_start(yard: Yard, live_service: Live) -> None:
    assert yard("queue") == "nobody waits\n"
    assert yard("queue", "--calibration").startswith("no job with a forecast")
    box.add_node(live_service.context.db, devices=2, last_seen_us=live_service.context.now_us())
    with Client() as client:
        first = submit(client, 1, time_limit=7200)
        until(lambda: client.job(first.id).state == "assigned")
        job = submit(client, 2)
        said = yard("why", str(job.number))
        assert (
            f"Job {job.number} waits at place 1: node box has 1 GPU free and the job needs 2; the rest is held by job 1"
            in said
        )
        assert "expected: starts in 1h" in said
        command = f"yard cancel {job.number} && yard rerun {job.number} --set resources.gpus=1"
        assert f"it would start now with 1 GPU instead of 2, on node box\n      {command}\n" in said
        assert api.Why.model_validate_json(yard("why", str(job.number), "--json")).alternatives[0].command == command
        assert "1 GPU free and the job needs 2" in yard("queue")
        for part in command.split(" && "):
            yard(*part.split()[1:])
        until(lambda: client.job(str(job.number + 1)).state == "assigned")
        changed = yard("change", str(submit(client, 2).number), "--set", "priority=high", "--set", "time_limit=1h")
        assert changed == f"job {job.number + 2} queued, priority=high, time_limit=1h\n"
        found = client.job(str(job.number + 2))
        assert (found.priority.value, found.spec["time_limit"]) == ("high", 3600)
        now = live_service.context.now_us()
        values = {"key": "p/u/k", "made_us": now, "ended_us": now, "actual_us": 60 * SECOND, "source": "limit"}
        points = {f"{raw}{name}_us": 60 * SECOND for name in ("p10", "p50", "p90") for raw in ("", "raw_")}
        with live_service.context.db.write() as tx:
            tx.execute(insert(Forecast).values(job_id=first.id, **values, **points))
        assert "limit          1     100%  100%  100%  0%" in yard("queue", "--calibration")
