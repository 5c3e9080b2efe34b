"""Text of other people and programs in every command: it is shown, steers no terminal and stops no command."""

import re
import sys
from collections.abc import Callable

import pytest
from sqlalchemy import update

from service.db.models import Job, Node, Tag, User
from tests.support import scripted
from tests.support.live import Live
from torchyard.cli import main
from torchyard.client.client import Client

HOSTILE = "x[/b][red]\x1b[2J\x1b]0;t\x07\r\u202e\u2066"
SHOWN = "x[/b][red]"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def yard(live_service: Live, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command line in this process; all that it showed."""
    monkeypatch.setenv("TORCHYARD_URL", live_service.url)

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["yard", *words])
        with pytest.raises(SystemExit) as ended:
            main.run()
        shown = capsys.readouterr()
        assert not ended.value.code, shown
        assert not STEERING.search(shown.out + shown.err), shown
        return shown.out + shown.err

    return run


def test_hostile_text_is_shown_as_it_is(yard: Callable[..., str], live_service: Live, client: Client) -> None:
    plain = {"command": ["true", HOSTILE], "launcher": "none", "tags": ["of an earlier version"]}
    with scripted.agent(live_service, devices=2) as agent:
        agent.offenders = [HOSTILE]
        agent.register(labels=[HOSTILE])
        job, attempts = {}, {}
        for name, gpus in (("failed", 0), ("running", 2)):
            job[name] = client.submit({**plain, "resources": {"gpus": gpus}})
            attempt = attempts[name] = agent.start()
            attempt.report(range(3), **{HOSTILE: 0.5})
            attempt.checkpoint(2, {"state.pt": b"state"}, **{HOSTILE: 0.5})
            attempt.write(HOSTILE + "\n")
        waiting = client.submit({**plain, "resources": {"gpus": 2}})
        sweep = client.submit_sweep({**plain, "command": ["true", "{lr}"], "sweep": {"lr": [HOSTILE, "b"]}})
        with live_service.context.db.write() as tx:
            tx.execute(update(Job).values(name=HOSTILE))
            tx.execute(update(Tag).values(tag=HOSTILE))
            tx.execute(update(User).values(name=HOSTILE))
            tx.execute(update(Node).values(labels=[HOSTILE]))
        attempts["failed"].end(exit_code=1, failed_rank=0, message=HOSTILE, traceback=f"Traceback: {HOSTILE}")
        for words in (
            ("ls",),
            ("ls", "--trials"),
            *(("show", each.id) for each in job.values()),
            ("show", waiting.id),
            ("metrics", job["running"].id),
            ("checkpoints", job["running"].id),
            ("sweep", "ls"),
            ("sweep", "show", str(sweep.number)),
            ("users",),
            ("nodes",),
            ("top",),
        ):
            assert SHOWN in yard(*words), words
        for words in (
            ("why", waiting.id),
            ("why", job["running"].id),
            ("queue",),
            ("projects",),
            ("token", "ls", "--all"),
            ("quota", "ls"),
            ("reservations",),
            ("usage",),
            ("usage", "--digest"),
            ("stacks", job["running"].id),
            ("logs", "--list", job["running"].id),
            ("outputs", job["failed"].id),
            ("hold", waiting.id),
            ("change", waiting.id, "--set", "priority=high"),
            ("rerun", job["running"].id),
            ("cancel", waiting.id),
            ("discard", "--yes", job["failed"].id),
        ):
            assert yard(*words), words
