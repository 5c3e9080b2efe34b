"""`yard link`: a public link is printed, opens without a token, and is revoked."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.specs import spec
from torchyard.cli import main


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_link_is_printed_opens_and_is_revoked(
    serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def yard(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["yard", *words])
        with pytest.raises(SystemExit) as ended:
            main.run()
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    with serve() as live:
        monkeypatch.setenv("TORCHYARD_URL", live.url)
        job = str(live.client.post("/api/v1/jobs", json=spec()).json()["number"])
        refused = yard("link", job)
        assert refused[0] == 1
        assert "TORCHYARD_SHARED_LINKS=1" in refused[2]
        live.context.settings.shared_links = True
        code, url, told = yard("link", job, "--expires", "2d")
        assert code == 0
        assert url.startswith(f"{live.url}/shared/")
        assert f"yard link {job} --revoke" in told
        shown = url.strip().replace("/shared/", "/api/v1/shared/")
        assert live.anonymous.get(shown).json()["name"] == "nothing"
        assert json.loads(yard("link", job, "--json")[1]).keys() == {"url", "token", "expires_at"}
        assert yard("link", job, "--expires", "91d")[0] == 1
        assert yard("link", job, "--revoke")[0] == 0
        assert live.anonymous.get(shown).status_code == 404
