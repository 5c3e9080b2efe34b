"""Ranks of one node meet where only this machine can reach them, and torchrun's agent unpickles nothing of others'."""

import ipaddress
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support import accounts
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


#: Puts a pickle, which makes a folder for whoever reads it, under the key of torchrun's rendezvous.
PLANTS = """
import base64, os, pickle, sys
from datetime import timedelta
from torch.distributed import TCPStore

key, folder, *ports = sys.argv[1:]
class Planted:
    def __reduce__(self):
        return os.mkdir, (f"{folder}/of-{os.getuid()}",)
for port in ports:
    store = TCPStore("127.0.0.1", int(port), is_master=False, timeout=timedelta(seconds=60))
    store.set(key, base64.b64encode(pickle.dumps(Planted())))
    assert pickle.loads(base64.b64decode(store.get(key))) is None
    os.rmdir(f"{folder}/of-{os.getuid()}")
"""


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def start(box: Box, **more: Any) -> tuple[AttemptFolder, list[str]]:
    """Two ranks that have met; returns what the first one has printed."""
    job: dict[str, Any] = {"launcher": "torchrun", "command": ["python", "train.py"], "files": {"train.py": MEETS}}
    folder = box.assign(**job, slots=2, **more)
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


def ports_of_agent(folder: AttemptFolder) -> list[str]:
    shim = folder.read_shim()
    assert shim is not None
    return [str(port) for _, port in listening([shim.child_pid])]


@accounts.needs_root
def test_a_pickle_that_others_put_into_the_agents_store_is_not_read(open_tmp: Path) -> None:
    """Whoever has an account on the machine reaches the store; the state of torchrun's own rendezvous was a pickle."""
    python = accounts.python(open_tmp)
    planted = open_tmp / "planted"
    planted.mkdir()
    planted.chmod(0o777)
    # A user of the queue, another one, and somebody who only has an account.
    with accounts.account() as ada, accounts.account() as bob, accounts.account() as stranger:
        folder, said = start(Box(open_tmp / "yard", python=python), unix_user=ada.pw_name)
        _, _, port, run, shared, _ = said
        assert shared == "True"
        assert folder.at(layout.JOB).stat().st_uid == ada.pw_uid
        ports = ports_of_agent(folder)
        assert port in ports
        for who in (bob, stranger):
            command = [python, "-c", PLANTS, f"torch.rendezvous.{run}", planted, *ports]
            subprocess.run(command, user=who.pw_uid, group=who.pw_gid, extra_groups=[], check=True)
        finish(folder)
    assert list(planted.iterdir()) == [], "nobody has read it, as ada or as root"
