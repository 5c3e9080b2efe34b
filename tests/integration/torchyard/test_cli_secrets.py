"""`yard secrets`: the value comes through a pipe or a prompt, and is never printed."""

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from service.db.models import Secret
from tests.support.live import Live
from torchyard.cli import main

VALUE = "k-0123456789abcdef"
Yard = Callable[..., tuple[int, str, str]]


@pytest.fixture
def yard(live_service: Live, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Yard:
    monkeypatch.setenv("TORCHYARD_URL", live_service.url)

    def run(*words: str, given: str | bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["yard", *words])
        piped = given.encode() if isinstance(given, str) else given
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
        with pytest.raises(SystemExit) as ended:
            main.run()
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    return run


def test_a_secret_is_piped_listed_and_removed(yard: Yard, live_service: Live) -> None:
    set_one = yard("secrets", "set", "WANDB_API_KEY", given=f"{VALUE}\n")
    assert set_one[0] == 0
    assert "secrets: [WANDB_API_KEY]" in set_one[2]
    (stored,) = _stored(live_service)
    assert stored == VALUE
    yard("secrets", "set", "SHARED_KEY", "--project", "default", given=VALUE)
    listed: Any = json.loads(yard("secrets", "ls", "--json")[1])
    assert [(each["name"], each["project"]) for each in listed] == [("WANDB_API_KEY", None), ("SHARED_KEY", "default")]
    table = yard("secrets", "ls")[1]
    assert "project default" in table
    assert yard("secrets", "rm", "WANDB_API_KEY")[0] == 0
    assert yard("secrets", "rm", "SHARED_KEY", "--project", "default")[0] == 0
    assert _stored(live_service) == []
    missing = yard("secrets", "rm", "WANDB_API_KEY")
    assert missing[0] == 1
    assert "no secret of yours named 'WANDB_API_KEY'" in missing[2]
    assert VALUE not in "".join([*set_one[1:], table, *missing[1:]])


def test_an_empty_value_is_refused(yard: Yard, live_service: Live) -> None:
    code, _, told = yard("secrets", "set", "WANDB_API_KEY", given="\n")
    assert code == 1
    assert "text that is not empty" in told
    assert _stored(live_service) == []


def test_bytes_that_are_no_text_are_refused_and_not_shown(yard: Yard, live_service: Live) -> None:
    code, _, told = yard("secrets", "set", "WANDB_API_KEY", given=b"k-\xff\xfe")
    assert code == 1
    assert told.startswith("yard: the value is not UTF-8 text: encode it, such as `base64 FILE | yard secrets set")
    assert "k-" not in told
    assert _stored(live_service) == []


def _stored(live: Live) -> list[str]:
    with live.context.db.read() as tx:
        return [live.context.secret_keys.decrypt(each) for each in tx.scalars(select(Secret.encrypted))]
