"""Ranks of one node meet where only this machine can reach them, and torchrun's agent unpickles nothing of others'."""

import base64
import ipaddress
import os
import pickle
import socket
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from torch.distributed import TCPStore

from tests.support.node import Box, ended, log
from tests.support.wait import until
from torchyard.injob import layout
from worker.attempts.folder import AttemptFolder
from worker.monitoring import processes
from worker.shim.joining import sockets_of

MEETS = """
import os, pathlib, time
import torch, torch.distributed as dist

dist.init_process_group("gloo")
one = torch.ones(1)
dist.all_reduce(one)
names = "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE"
print(int(one), *(os.environ[name] for name in names), "ready", flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.02)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def start(box: Box) -> tuple[AttemptFolder, list[str]]:
    """Two ranks that have met; returns what the first one has printed."""
    folder = box.assign(launcher="torchrun", command=["python", "train.py"], files={"train.py": MEETS}, slots=2)
    box.launcher.start(folder.attempt_id)
    logs = [folder.at(layout.LOGS) / f"rank-{rank}.log" for rank in range(2)]
    until(lambda: all("ready" in path.read_text() for path in logs), seconds=120, what="the ranks")
    return folder, log(folder).split()


def finish(folder: AttemptFolder) -> None:
    (folder.at(layout.CODE) / "go").touch()
    result = ended(folder, 60)
    assert [(each.rank, each.exit_code) for each in result.ranks] == [(0, 0), (1, 0)], log(folder)


def listening(pids: Iterable[int]) -> set[tuple[str, int]]:
    """Addresses and ports on which processes listen, by the kernel's tables."""
    inodes = set().union(*map(sockets_of, pids))
    found = set()
    for name, size in (("tcp", 4), ("tcp6", 16)):
        for line in Path("/proc/net", name).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[9]) in inodes:
                address, port = fields[1].split(":")
                words = [int(address[at : at + 8], 16).to_bytes(4, "little") for at in range(0, size * 2, 8)]
                found.add((str(ipaddress.ip_address(b"".join(words))), int(port, 16)))
    return found


def addresses() -> list[str]:
    """Addresses of this machine besides the one at which ranks meet; what listens on all of them answers at each."""
    own = [each.address for found in psutil.net_if_addrs().values() for each in found if each.family == socket.AF_INET]
    return ["127.0.0.2", *(address for address in own if address != "127.0.0.1")]


def test_nothing_of_a_job_can_be_reached_from_elsewhere(box: Box) -> None:
    folder, said = start(box)
    found = listening(process.pid for process in processes.of_attempt(folder.attempt_id))
    assert {address for address, _ in found} == {"127.0.0.1"}
    assert ("127.0.0.1", int(said[2])) in found
    for address in addresses():
        for _, port in found:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((address, port), timeout=5)
    finish(folder)


class Planted:
    """Tells on whoever unpickles it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self._path),)


def test_a_pickle_that_a_stranger_puts_into_the_agents_store_is_not_read(box: Box, tmp_path: Path) -> None:
    """Whoever has an account on the machine reaches the store; the state of torchrun's own rendezvous was a pickle."""
    folder, said = start(box)
    _, _, port, run, shared, _ = said
    assert shared == "True"
    planted = tmp_path / "planted"
    shim = folder.read_shim()
    assert shim is not None
    ports = {found for _, found in listening([shim.child_pid])}
    assert int(port) in ports
    for each in ports:
        store = TCPStore("127.0.0.1", each, is_master=False, timeout=timedelta(seconds=10))
        store.set(f"torch.rendezvous.{run}", base64.b64encode(pickle.dumps(Planted(planted))))
    (folder.at(layout.CODE) / "go").touch()
    result = ended(folder, 60)
    assert not planted.exists()
    assert [each.exit_code for each in result.ranks] == [0, 0]
