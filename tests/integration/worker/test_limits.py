"""Limits that the kernel holds real attempts to."""

import os
import secrets
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.lifecycle.outcome import error_of
from tests.support import cpusets
from tests.support.node import PYTHON, Box, ended, log, python
from tests.support.wait import until
from tests.support.worker import Yard, yard
from torchyard.injob import layout
from torchyard.spec import Resources
from torchyard.states import StopReason
from torchyard.wire import Action, AttemptOrder, Capability, ResultKind
from worker.attempts.folder import AttemptFolder, order
from worker.control import registration
from worker.limits.hierarchies import Controller, Hierarchy, usable
from worker.limits.node import NodeLimits
from worker.monitoring import processes

NEEDED = {Controller.MEMORY, Controller.PIDS, Controller.CPUSET}
MIB = 1 << 20
pytestmark = pytest.mark.skipif(not usable().keys() >= NEEDED, reason="needs root, and cgroups that it may make")

#: Holds so many MiB, says so, and stays.
HOLD = "held = bytearray({} << 20); print('holds', flush=True); import time; time.sleep(600)"
#: Forks as long as it may, and says how often it could.
BOMB = """
import os, time
pids = []
try:
    while len(pids) < 5000:
        pid = os.fork()
        if pid == 0:
            time.sleep(600)
            os._exit(0)
        pids.append(pid)
except BlockingIOError:
    print(len(pids), flush=True)
for pid in pids:
    os.kill(pid, 9)
"""


@pytest.fixture
def limits() -> Iterator[NodeLimits]:
    made = NodeLimits(hierarchies=usable(), home_id=secrets.token_hex(16), processes=64)
    yield made
    left = groups(made)
    made.sweep(lambda _: False)
    assert left == []


@pytest.fixture
def box(tmp_path: Path, limits: NodeLimits) -> Box:
    return Box(tmp_path, limits=limits)


def groups(limits: NodeLimits) -> list[Path]:
    """All groups of a worker's attempts."""
    bases = {each.base for each in limits.hierarchies.values()}
    return [path for base in bases for path in base.glob(f"torchyard-{limits.home_id[:8]}-*")]


def holding(box: Box, size: int, **resources: Any) -> AttemptFolder:
    folder = box.assign(command=python(HOLD.format(size)), resources={"gpus": 0} | resources)
    box.launcher.start(folder.attempt_id)
    return folder


def stop(folder: AttemptFolder) -> None:
    shim = folder.read_shim()
    assert shim is not None
    os.kill(shim.child_pid, signal.SIGKILL)
    ended(folder)


def test_a_job_that_takes_more_memory_than_it_asked_for_is_ended_and_told_so(box: Box) -> None:
    neighbour = holding(box, 20, memory="100MiB")
    until(lambda: "holds" in log(neighbour), what="the neighbour")
    _, result = box.run(command=python(HOLD.format(400)), resources={"gpus": 0, "memory": "100MiB"})
    assert (result.kind, result.fingerprint) == (ResultKind.KILLED, "memory-limit")
    assert error_of(result).message.startswith("used more than its memory of 100.0 MiB: ")
    assert not neighbour.has_result()
    stop(neighbour)


@pytest.mark.parametrize("memory", [None, "200MiB"])
def test_a_job_that_the_kernel_ends_on_a_full_node_is_told_so(
    tmp_path: Path, limits: NodeLimits, memory: str | None
) -> None:
    """A group around the job's, with less memory than that may have, is the node."""
    found = limits.hierarchies[Controller.MEMORY]
    node = found.base / f"torchyard-{limits.home_id[:8]}-node"
    node.mkdir()
    (node / {1: "memory.limit_in_bytes", 2: "memory.max"}[found.version]).write_text(str(100 * MIB))
    if found.version == 2:
        (node / "cgroup.subtree_control").write_text("+memory")
    full = replace(limits, hierarchies={Controller.MEMORY: replace(found, base=node)})
    hog = python("held = []\nwhile True:\n    held.append(bytearray(1 << 20))")
    try:
        _, result = Box(tmp_path, limits=full).run(command=hog, resources={"gpus": 0, "memory": memory})
    finally:
        node.rmdir()
    assert (result.kind, result.fingerprint) == (ResultKind.KILLED, "node-memory")
    assert error_of(result).message.startswith("the node ran out of memory and the kernel chose this job, which held ")


def test_without_cgroups_the_shim_ends_a_job_that_holds_too_much(tmp_path: Path) -> None:
    box = Box(tmp_path)
    neighbour = holding(box, 20, memory="100MiB")
    _, result = box.run(command=python(HOLD.format(400)), resources={"gpus": 0, "memory": "100MiB"})
    assert (result.kind, result.fingerprint) == (ResultKind.KILLED, "memory-limit")
    assert "this node looks every 2 s" in (result.message or "")
    assert not neighbour.has_result()
    stop(neighbour)


def test_a_job_of_another_account_cannot_lift_its_limits(short_tmp: Path, limits: NodeLimits) -> None:
    short_tmp.chmod(0o755)
    script = """#!/bin/sh
for group in $(find /sys/fs/cgroup -type d -name "torchyard-*$TORCHYARD_ATTEMPT_ID"); do
    find $group -writable
done
grep -c torchyard- /proc/self/cgroup
"""
    folder, result = Box(short_tmp, limits=limits).run(
        unix_user="nobody", command=["./run.sh"], files={"run.sh": script}, resources={"gpus": 0, "memory": "1GiB"}
    )
    assert result.exit_code == 0
    (entered,) = log(folder).splitlines()
    assert int(entered) >= 1


def test_a_program_that_goes_on_without_the_process_that_was_killed_is_ended(box: Box) -> None:
    command = ["sh", "-c", f"{PYTHON} -c 'held = bytearray(400 << 20)'; echo goes on; sleep 600"]
    _, result = box.run(command=command, resources={"gpus": 0, "memory": "100MiB"})
    assert (result.kind, result.fingerprint) == (ResultKind.KILLED, "memory-limit")


def test_the_most_that_a_job_has_held_is_told_without_the_page_cache(box: Box, tmp_path: Path) -> None:
    code = f"""
import os, time

def looks():  # of the shim, which rests in between
    with open(f"/proc/{{os.getppid()}}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))

with open({str(tmp_path / "large")!r}, "wb") as file:
    for _ in range(100):
        file.write(bytes(1 << 20))
held = bytearray(60 << 20)
begun, enough = time.monotonic(), looks() + 10
while time.monotonic() < begun + 2.5 or looks() < enough:
    time.sleep(0.05)
"""
    _, result = box.run(command=python(code))
    assert result.exit_code == 0
    assert result.memory_peak is not None
    assert 60 * MIB <= result.memory_peak < 100 * MIB


def test_a_full_node_loses_a_job_without_a_limit_first_and_its_guard_last(box: Box) -> None:
    own = Path("/proc/self/oom_score_adj")
    told = {int(own.read_text()), -900}  # a container may be refused less
    for resources, score in (({}, {500}), ({"memory": "100MiB"}, {0})):
        folder = holding(box, 1, **resources)
        shim = folder.read_shim()
        assert shim is not None
        assert int(Path(f"/proc/{shim.pid}/oom_score_adj").read_text()) in told
        assert {int(Path(f"/proc/{shim.child_pid}/oom_score_adj").read_text())} == score
        stop(folder)


def test_a_fork_bomb_ends_at_the_limit_of_processes(box: Box) -> None:
    folder, result = box.run(command=python(BOMB))
    assert result.exit_code == 0
    assert 32 < int(log(folder)) < 64


def test_a_job_that_fails_for_want_of_processes_is_told_so(box: Box) -> None:
    _, result = box.run(command=["sh", "-c", "while :; do sleep 600 & done"])
    assert (result.kind, result.fingerprint) == (ResultKind.EXITED, "process-limit")
    assert error_of(result).message.startswith("reached its limit of 64 processes and threads: start fewer at a time")


def test_a_job_that_only_multiplies_is_ended(box: Box) -> None:
    _, result = box.run(command=["sh", "-c", "while :; do (while :; do sleep 600 & done) 2> /dev/null; done"])
    assert (result.kind, result.fingerprint) == (ResultKind.KILLED, "process-limit")


def test_a_job_sees_the_cores_that_it_asked_for_and_its_neighbour_has_others(
    tmp_path: Path, limits: NodeLimits
) -> None:
    with cpusets.apart(limits.hierarchies) as hierarchies:
        box = Box(tmp_path, limits=replace(limits, hierarchies=hierarchies))
        first = holding(box, 1, cpus=1)
        until(lambda: "holds" in log(first), what="the job")
        shim = first.read_shim()
        assert shim is not None
        seen = os.sched_getaffinity(shim.child_pid)
        told = python("import os; print(*os.sched_getaffinity(0))")
        folder, _ = box.run(command=told, resources={"gpus": 0, "cpus": 1})
        other = {int(core) for core in log(folder).split()}
        assert len(seen) == len(other) == 1
        assert seen != other
        stop(first)


def test_without_cpusets_cores_are_a_quota(tmp_path: Path, limits: NodeLimits) -> None:
    hierarchies = {name: each for name, each in limits.hierarchies.items() if name is not Controller.CPUSET}
    box = Box(tmp_path, limits=replace(limits, hierarchies=hierarchies))
    folder = holding(box, 1, cpus=1)
    (group,) = (path for path in groups(limits) if (path / "cpu.cfs_quota_us").exists() or (path / "cpu.max").exists())
    quota = group / "cpu.cfs_quota_us"
    assert (quota if quota.exists() else group / "cpu.max").read_text().split()[0] == "100000"
    stop(folder)


@pytest.mark.parametrize("way", ["the machine's", "version 2"])
def test_a_job_opens_no_devices_that_were_given_to_others(tmp_path: Path, limits: NodeLimits, way: str) -> None:
    """``/dev/full`` stands for a GPU."""
    hierarchy = Hierarchy(version=2, base=unified()) if way == "version 2" else usable()[Controller.DEVICES]
    others = replace(
        limits, hierarchies={Controller.DEVICES: hierarchy}, others=lambda own: [(1, 7)] if not own else []
    )
    box = Box(tmp_path, limits=others)
    code = "for name in ('zero', 'full'):\n    open('/dev/' + name, 'rb').close()\n    print(name, flush=True)"
    folder, result = box.run(command=python(code))
    assert result.exit_code == 1
    assert log(folder).startswith("zero\n")
    assert "PermissionError" in log(folder)
    folder, result = box.run(command=python(code), slots=1)
    assert (result.exit_code, log(folder)) == (0, "zero\nfull\n")
    assert groups(others) == []


def unified() -> Path:
    """Where version 2 is mounted."""
    lines = map(str.split, Path("/proc/self/mountinfo").read_text().splitlines())
    return next(Path(words[4]) for words in lines if "cgroup2" in words)


def test_what_a_killed_shim_leaves_ends_with_its_groups(box: Box, limits: NodeLimits) -> None:
    """Also what hides from the sweep by its environment."""
    hidden = "import os; os.execve('/bin/sleep', ['sleep', '600'], {})"
    folder = box.assign(command=["sh", "-c", f'{PYTHON} -c "{hidden}" & echo started; wait'])
    box.launcher.start(folder.attempt_id)
    until(lambda: "started" in log(folder), what="the job")
    shim = folder.read_shim()
    assert shim is not None
    until(lambda: len(processes.of_attempt(folder.attempt_id)) == 1, what="the process without the mark")
    assert groups(limits) != []
    os.kill(shim.pid, signal.SIGKILL)
    until(lambda: box.launcher.finalize_lost(folder.attempt_id), what="its end")
    assert groups(limits) == []


def test_a_worker_that_starts_removes_what_dead_attempts_left_and_spares_the_living(
    box: Box, limits: NodeLimits
) -> None:
    living = holding(box, 1, memory="100MiB")
    limits.create("att-dead", Resources(gpus=0))
    before = groups(limits)
    limits.sweep(lambda attempt: AttemptFolder(box.attempts, attempt).locked())
    left = groups(limits)
    assert left
    assert {path.name for path in left} < {path.name for path in before}
    assert {path.name.partition("-")[2].partition("-")[2] for path in left} == {living.attempt_id}
    stop(living)


def test_the_groups_of_another_worker_are_left_alone(limits: NodeLimits) -> None:
    other = replace(limits, home_id=secrets.token_hex(16))
    other.create("att-1", Resources(gpus=0))
    limits.sweep(lambda _: False)
    assert groups(other) != []
    other.sweep(lambda _: False)
    assert groups(other) == []


@pytest.fixture
def worker(tmp_path: Path, short_tmp: Path) -> Iterator[Yard]:
    """A real worker, whose groups are removed with it."""
    with yard(tmp_path, short_tmp) as made:
        made.environment["TORCHYARD_CGROUPS"] = "1"
        try:
            yield made
        finally:
            of_home(made).sweep(lambda _: False)


def of_home(worker: Yard) -> NodeLimits:
    home_id = registration.identity(worker.home).home_id
    return NodeLimits(hierarchies=usable(), home_id=home_id)


def test_a_worker_that_was_killed_takes_up_the_limits_again(worker: Yard, tmp_path: Path) -> None:
    worker.start()
    assert {Capability.MEMORY_LIMIT, Capability.PROCESS_LIMIT} <= set(worker.fake.registered[-1].capabilities)
    wait = f"import os, time\nprint('ready', flush=True)\nwhile not os.path.exists({str(tmp_path / 'go')!r}):"
    hog = python(f"{wait}\n    time.sleep(0.02)\nheld = bytearray(400 << 20)")
    lives, dies = (
        worker.fake.assign(hog, resources={"gpus": 0, "memory": "100MiB"}),
        worker.fake.assign(["sleep", "600"]),
    )
    for attempt in (lives, dies):
        worker.send(attempt)
        until((worker.attempts / attempt / layout.SHIM).exists, what="the start")
    limits = of_home(worker)
    before = {path for path in groups(limits) if path.name.endswith(lives)}
    worker.kill()
    shim = AttemptFolder(worker.attempts, dies).read_shim()
    assert shim is not None
    os.kill(shim.pid, signal.SIGKILL)
    worker.start()
    assert worker.settled(dies).kind is ResultKind.LOST
    assert set(groups(limits)) == before
    (tmp_path / "go").touch()
    assert worker.settled(lives).fingerprint == "memory-limit"
    assert groups(limits) == []


def test_a_fork_bomb_that_forks_again_for_each_that_is_killed_ends(box: Box, limits: NodeLimits) -> None:
    bomb = """
import os
print("ready", flush=True)
while True:
    try:
        os.fork()
    except BlockingIOError:
        pass
"""
    folder = box.assign(command=python(bomb))
    box.launcher.start(folder.attempt_id)
    (group,) = (path for path in groups(limits) if (path / "pids.max").exists())
    until(lambda: int((group / "pids.current").read_text()) == limits.processes, what="the bomb")
    kill = AttemptOrder(attempt=folder.attempt_id, action=Action.KILL, serial=1, reason=StopReason.CANCEL)
    order(folder, kill)
    assert ended(folder).kind is ResultKind.KILLED
