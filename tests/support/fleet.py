"""A service and workers on machines of their own: network namespaces, each with a worker home."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import live, networks, redis
from tests.support.live import Live
from torchyard.client.client import Client


@dataclass(frozen=True)
class Fleet:
    """Node names in their order, and how they are reached."""

    live: Live
    client: Client
    addresses: dict[str, str]


@contextmanager
def fleet(folder: Path, *, nodes: int = 2, slots: int = 2) -> Iterator[Fleet]:
    """TORCHYARD_HOME must be the test's own."""
    with ExitStack() as stack:
        network = stack.enter_context(networks.network(nodes))
        short = stack.enter_context(tempfile.TemporaryDirectory(prefix="ty-", dir="/tmp"))  # paths of sockets end early
        broker = stack.enter_context(redis.serve(Path(short)))
        settings = live.settings_for(
            f"sqlite:///{folder / 'fleet.db'}",
            folder,
            broker_url=broker.url,
            host=network.address,
            behind_proxy=True,
            heartbeat_s=0.5,
        )
        running = stack.enter_context(live.running(settings))
        for name in network.machines:
            (folder / name).mkdir()
            stack.enter_context(_worker(network, running, name, folder / name, slots))
        client = stack.enter_context(Client(running.url, running.admin_token))
        yield Fleet(running, client, network.machines)


@contextmanager
def _worker(network: networks.Network, running: Live, name: str, home: Path, slots: int) -> Iterator[None]:
    answer = running.client.post("/api/v1/tokens", json={"name": name, "scopes": ["node"], "node": name})
    token = home / "token"
    token.write_text(answer.raise_for_status().json()["secret"])
    command = [sys.executable, "-m", "worker", "--name", name, "--join", running.url, "--home", str(home)]
    command += ["--token-file", str(token), "--cpu-slots", str(slots)]
    env = {**os.environ, "TORCHYARD_ONE_TRUST_DOMAIN": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(network.inside(name, command), env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == f"ready {name}\n"
            yield
        finally:
            process.terminate()
