"""Jobs with `network: isolated` reach nobody, and nobody reaches them, whatever account they have on the machine."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import accounts
from tests.support.node import Box, ended, log
from tests.support.wait import until
from torchyard.injob import layout
from torchyard.wire import Capability
from worker.attempts.folder import AttemptFolder
from worker.control.capabilities import capabilities

pytestmark = accounts.needs_root

#: The system's own: accounts may not enter the folder of the tests' interpreter.
PYTHON = "/usr/bin/python3"
#: Two ranks of a real training that meet, stay until they are told, and end together.
TRAINS = """
import os, pathlib, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 1))
model(torch.ones(2, 4)).sum().backward()
pathlib.Path(os.environ["TORCHYARD_OUTPUT_DIR"], f"kept-{dist.get_rank()}").write_text("kept")
print(os.environ["MASTER_PORT"], "ready", flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.02)
dist.barrier()
dist.destroy_process_group()
"""
#: Listens on all interfaces, and on a name without a file, as careless programs do.
LISTENS = f"""#!{PYTHON}
import os, socket, sys
abstract = socket.socket(socket.AF_UNIX)
abstract.bind(chr(0) + os.environ["TORCHYARD_ATTEMPT_ID"])
abstract.listen()
listener = socket.create_server(("0.0.0.0", 0))
print(listener.getsockname()[1], os.getuid(), "ready", flush=True)
while True:
    listener.accept()
"""
CONNECTS = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=5)"
CONNECTS_BY_NAME = "import socket, sys; socket.socket(socket.AF_UNIX).connect(chr(0) + sys.argv[1])"


@pytest.fixture
def box(open_tmp: Path) -> Box:
    return Box(open_tmp)


def reaches(uid: int, code: str, where: str) -> bool:
    """Return whether somebody with an account on the machine gets a connection."""
    who: dict[str, Any] = {"user": uid, "group": uid, "extra_groups": []}
    tried = subprocess.run([PYTHON, "-c", code, where], capture_output=True, check=False, **who)
    assert tried.returncode == 0 or b"ConnectionRefusedError" in tried.stderr, tried.stderr
    return tried.returncode == 0


@contextmanager
def running(box: Box, **assigned: Any) -> Iterator[tuple[AttemptFolder, list[str]]]:
    """A job that has said what it has to say."""
    folder = box.assign(**assigned)
    box.launcher.start(folder.attempt_id)
    until(lambda: "ready" in log(folder), seconds=120, what="the job")
    try:
        (line,) = (line for line in log(folder).splitlines() if line.endswith("ready"))
        yield folder, line.split()
    finally:
        shim = folder.read_shim()
        if shim is not None and not folder.has_result():
            os.kill(shim.child_pid, 9)
        ended(folder)


@pytest.mark.parametrize("network", ["host", "isolated"])
def test_a_strangers_account_reaches_a_job_unless_it_is_isolated(box: Box, network: str) -> None:
    with accounts.account() as ada, accounts.account() as eve:
        job = {"unix_user": ada.pw_name, "command": ["./listen.py"], "files": {"listen.py": LISTENS}}
        with running(box, **job, network=network) as (folder, said):
            assert said[1] == str(ada.pw_uid)
            assert reaches(eve.pw_uid, CONNECTS_BY_NAME, folder.attempt_id) is (network == "host")
            assert reaches(eve.pw_uid, CONNECTS, said[0]) is (network == "host")


def test_isolated_ranks_train_and_their_store_is_nobodys_else(box: Box) -> None:
    job = {"launcher": "torchrun", "command": ["python", "train.py"], "files": {"train.py": TRAINS}, "slots": 2}
    with running(box, **job, network="isolated") as (folder, said), accounts.account() as eve:
        assert not reaches(eve.pw_uid, CONNECTS, said[0])
        (folder.at(layout.CODE) / "go").touch()
        result = ended(folder)
    assert [(each.rank, each.exit_code) for each in result.ranks] == [(0, 0), (1, 0)], log(folder)
    assert {path.name for path in folder.at(layout.OUTPUT).iterdir()} == {"kept-0", "kept-1"}


def test_an_isolated_job_has_the_loopback_interface_and_no_service_of_the_node(box: Box) -> None:
    code = f"""#!{PYTHON}
import socket, sys
print(*(name for _, name in socket.if_nameindex()))
own = socket.create_server(("127.0.0.1", 0))
socket.create_connection(own.getsockname(), timeout=5)
print("meets itself")
socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5)
"""
    with socket.create_server(("127.0.0.1", 0)) as service:
        there = str(service.getsockname()[1])
        folder, result = box.run(command=["./try.py", there], files={"try.py": code}, network="isolated")
    assert result.exit_code == 1
    assert "ConnectionRefusedError" in log(folder)
    assert log(folder).splitlines()[0].split()[0] == "lo"
    assert "meets itself" in log(folder)


def test_a_worker_that_may_make_namespaces_says_so() -> None:
    assert Capability.NETWORK_ISOLATION in capabilities()
