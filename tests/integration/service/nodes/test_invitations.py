"""Machines that join by an invitation: once, in time, and as the node that was invited."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import update

from service.db.models import Token
from tests.support.live import Live
from tests.support.problems import kind
from torchyard.client import joining
from torchyard.exceptions import JoinError

API = "/api/v1"


def invite(live: Live, node: str = "box2", **asked: str) -> str:
    answer = live.client.post(f"{API}/nodes/{node}/invitations", json=asked)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    token: str = answer.json()["token"]
    return token


def test_a_machine_gets_the_nodes_own_token_and_keeps_it(live_service: Live, tmp_path: Path) -> None:
    file = tmp_path / "node.token"
    invitation = invite(live_service)
    assert joining.join(live_service.url, invitation, "box2", file)
    assert file.stat().st_mode & 0o777 == 0o600
    with live_service.as_token(file.read_text().strip()) as node:
        headers = {"TorchYard-Protocol": "1"}
        assert node.post(f"{API}/agent/heartbeat", json={}, headers=headers).status_code == 422
        assert kind(node.get(f"{API}/jobs")) == (403, "forbidden")
    # Started again with the same command line, it goes on with that; the invitation counts no more.
    assert not joining.join(live_service.url, invitation, "box2", file)
    with pytest.raises(JoinError, match=r"counts no more: it was used, has expired or was revoked.*--invite box2"):
        joining.join(live_service.url, invitation, "box2", tmp_path / "other.token")
    told = [(each["action"], each["result"]) for each in live_service.client.get(f"{API}/audit").json()["items"]]
    assert told[:3] == [("node.join", "refused"), ("node.join", "done"), ("node.invite", "done")]


def test_an_invitation_does_nothing_else_and_expires(live_service: Live, tmp_path: Path) -> None:
    invitation = invite(live_service, expires_in="10m")
    with live_service.as_token(invitation) as stranger:
        assert kind(stranger.get(f"{API}/jobs")) == (403, "forbidden")
        assert kind(stranger.post(f"{API}/agent/heartbeat", json={}, headers={"TorchYard-Protocol": "1"}))[0] == 403
        assert kind(stranger.post(f"{API}/tokens", json={"name": "x", "scopes": ["read"]})) == (403, "forbidden")
    answer = live_service.anonymous.post(f"{API}/session", json={"token": invitation})
    assert kind(answer) == (403, "forbidden")
    with live_service.context.db.write() as tx:
        tx.execute(update(Token).where(Token.node == "box2").values(expires_us=1))
    live_service.app.state.tokens.forget()
    with pytest.raises(JoinError, match="counts no more"):
        joining.join(live_service.url, invitation, "box2", tmp_path / "token")


def test_another_nodes_name_is_refused_and_uses_nothing_up(live_service: Live, tmp_path: Path) -> None:
    invitation = invite(live_service)
    with pytest.raises(JoinError, match="is for node box2, not box3: start it with --name box2"):
        joining.join(live_service.url, invitation, "box3", tmp_path / "token")
    assert joining.join(live_service.url, invitation, "box2", tmp_path / "token")


def test_a_worker_whose_invitation_was_used_says_so_and_ends(live_service: Live, tmp_path: Path) -> None:
    invitation = invite(live_service)
    joining.join(live_service.url, invitation, "box2", tmp_path / "first")
    command = [sys.executable, "-m", "worker", "--join", live_service.url, "--name", "box2", "--join-token", "-"]
    command += ["--token-file", str(tmp_path / "token"), "--home", str(tmp_path / "worker")]
    done = subprocess.run(command, input=invitation, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "this invitation counts no more: it was used" in done.stderr
    assert invitation not in done.stderr


def test_of_machines_that_come_at_once_one_gets_in(live_service: Live) -> None:
    with live_service.as_token(invite(live_service)) as machine, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: machine.post(f"{API}/nodes", json={"name": "box2"}), range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 401, 401, 401]
