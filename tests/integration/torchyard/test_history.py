"""What a box has run, simulated under quotas by `yard simulate --from-history`."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.live import Live
from tests.support.scripted import agent
from torchyard import api
from torchyard.api.sharing import NewReservation
from torchyard.client.client import Client


def simulate(live: Live, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "torchyard.cli.main", "simulate", "--from-history", *words]
    env = {**os.environ, "TORCHYARD_URL": live.url}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def run(live: Live, client: Client, gpus: int) -> None:
    client.submit({"command": ["true"], "launcher": "none", "resources": {"gpus": gpus}})
    with agent(live, devices=4) as node:
        node.start().end()


def test_what_a_quota_would_have_done_with_what_has_run(live_service: Live, client: Client, tmp_path: Path) -> None:
    client.create_user(api.NewUser(name="ada"))
    made = client.create_token(api.TokenRequest(name="laptop", scopes=["submit"], user="ada"))
    with Client(live_service.url, made.secret) as ada:
        for gpus in (1, 4):
            run(live_service, ada, gpus)
    run(live_service, client, 2)
    (admin,) = [user.name for user in client.users() if user.admin]
    free = simulate(live_service, "--gpus", "4", "--json")
    assert (free.returncode, free.stderr) == (0, "3 jobs that have ended here\n")
    assert "users" not in json.loads(free.stdout)
    quotas = tmp_path / "quotas.yaml"
    quotas.write_text("users: {ada: {max_gpus: 3}, eve: {weight: 2}}")
    bound = simulate(live_service, "--gpus", "4", "--quotas", str(quotas), "--json")
    assert bound.returncode == 0, bound.stderr
    assert set(json.loads(bound.stdout)["users"]) == {"ada", admin}
    assert bound.stderr.splitlines()[1:] == [
        "simulate: warning: users.eve: the trace has no jobs of this user",
        "simulate: warning: 1 job that could never start is left out of the simulation; line 3, num_gpus: 4 GPUs are "
        "more than max_gpus of user ada, 3",
    ]
    table = simulate(live_service, "--gpus", "4", "--quotas", str(quotas))
    assert "2 jobs of 2 users" in table.stdout
    assert [line.split()[:2] for line in table.stdout.splitlines() if " ada " in line] == [["fair", "ada"]]
    client.reserve(NewReservation(name="demo", users=("ada",), gpus=2, ends_at=datetime.now(UTC) + timedelta(hours=1)))
    reserved = simulate(live_service, "--gpus", "4", "--save-trace", str(tmp_path / "trace.csv"), "--json")
    assert (reserved.returncode, reserved.stderr.splitlines()[1:]) == (0, ["1 reservation, maintenance counted in"])
    assert (tmp_path / "trace-reservations.csv").read_text().count("demo") == 1
