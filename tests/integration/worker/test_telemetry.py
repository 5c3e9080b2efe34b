"""Samples of real processes; the GPU's part is recorded."""

import os
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil

from tests.support.node import Box, ended, log, python
from tests.support.nvml import Record, RecordedNvml
from tests.support.wait import until
from torchyard.wire import Device, DeviceKind, Phase
from worker.attempts.folder import AttemptFolder, ShimRecord
from worker.devices import offenders, trespass
from worker.devices.telemetry import Sampler
from worker.monitoring import inventory
from worker.monitoring.inventory import Status
from worker.shim import table

BUSY = "import time\nballast = b'x' * (64 << 20)\nprint('ready', flush=True)\nwhile True: time.process_time()"


def kill(folder: AttemptFolder) -> None:
    shim = folder.read_shim()
    assert shim is not None
    os.kill(shim.child_pid, signal.SIGKILL)
    ended(folder)


def moment(process: psutil.Process) -> tuple[float, float]:
    """Now, and the CPU time that a process has used until now, in seconds."""
    times = process.cpu_times()
    return time.monotonic(), times.user + times.system


def test_a_busy_attempt_and_its_node(tmp_path: Path) -> None:
    box = Box(tmp_path)
    folder = box.assign(command=["sh", "-c", '"$@"; true', "-", *python(BUSY)], slots=1)
    nvml = RecordedNvml(Record("cpu-0"), Record("GPU-b", utilization=None, power=None))
    sampler = Sampler(nvml, lambda: inventory.scan(box.attempts))
    box.launcher.start(folder.attempt_id)
    until(lambda: "ready" in log(folder), what="the job")
    shim = folder.read_shim()
    assert shim is not None
    nvml.cards[0].pids, nvml.cards[0].held = [shim.child_pid], {shim.child_pid: 11 * 2**30}
    (program,) = psutil.Process(shim.child_pid).children()
    moments = [moment(program)]
    sampler.sample()
    moments.append(moment(program))
    nvml.cards[0].held = {shim.child_pid: 2 * 2**30}
    until(lambda: moment(program)[1] > moments[-1][1] + 0.3, what="an interval")
    moments.append(moment(program))
    node, attempt = sampler.sample()
    moments.append(moment(program))
    assert node.attempt is None
    assert node.values.keys() == {
        "cpu.percent",
        "memory.used",
        "gpu.0.utilization",
        "gpu.0.memory_used",
        "gpu.0.temperature",
        "gpu.0.power",
        "gpu.1.memory_used",
        "gpu.1.temperature",
    }
    assert (node.values["gpu.0.utilization"], node.values["gpu.0.power"]) == (37, 121.344)
    assert attempt.attempt == folder.attempt_id
    assert sampler.gpu_memory_peak(folder.attempt_id) == 11 * 2**30
    first, *inner, last = moments
    (begin, used_before), (end, used) = inner
    least, most = (used - used_before) / (last[0] - first[0]), (last[1] - first[1]) / (end - begin)
    assert 100 * least - 1 <= attempt.values["cpu.percent"] <= 100 * most + 1
    assert attempt.values["memory.used"] > 64 << 20
    assert attempt.values["gpu.0.memory_used"] == 545_193_984
    assert "gpu.1.memory_used" not in attempt.values
    kill(folder)
    assert [sample.attempt for sample in sampler.sample()] == [None]


def test_without_nvml_the_node_still_tells_of_itself() -> None:
    (node,) = Sampler(None, list).sample()
    assert node.values.keys() == {"cpu.percent", "memory.used"}


def test_who_uses_a_card_that_is_not_theirs() -> None:
    own = table.Process(os.getpid())
    shim = ShimRecord(pid=own.pid, start_ticks=own.start_ticks, boot_id="", child_pid=own.pid, started_us=1)
    status = Status(attempt="att-1", phase=Phase.RUNNING, shim=shim, devices=("GPU-a",))
    with subprocess.Popen(["sleep", "60"]) as child:
        nvml = RecordedNvml(Record("GPU-a", pids=[child.pid, own.parent, 2**22 + 1]), Record("GPU-b", pids=[child.pid]))
        found = offenders.find(nvml, lambda: [status])
        child.kill()
    assert offenders.keep_off([device("GPU-b")], found) == [device("GPU-b")]
    assert [(each.uuid, each.pid, each.holders) for each in found] == [
        ("GPU-a", own.parent, ("att-1",)),
        ("GPU-b", child.pid, ()),
    ]
    assert "uses GPU GPU-a, which att-1 holds" in str(found[0])
    assert "process" in str(found[1])
    assert "given to nobody" in str(found[1])
    assert [each.finding().code for each in found] == ["on-held-gpu", "on-free-gpu"]
    assert found[0].finding().params.items() >= {"pid": own.parent, "uuid": "GPU-a", "holders": ("att-1",)}.items()


def test_who_is_on_a_card_from_outside_of_the_queue_is_told_with_age_and_memory() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        nvml = RecordedNvml(Record("GPU-a", pids=[child.pid], held={child.pid: 600 * 2**20}))
        (found,) = offenders.find(nvml, list)
        started, user = psutil.Process(child.pid).create_time(), psutil.Process(child.pid).username()
        child.kill()
    when = datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%d %H:%M UTC")
    assert str(found) == (
        f"process {child.pid} (sleep) of {user}, started {when}, uses 600.0 MiB of GPU GPU-a, "
        "which the queue has given to nobody"
    )


def test_all_that_share_a_card_may_use_it() -> None:
    own = table.Process(os.getpid())
    with subprocess.Popen(["sleep", "60"]) as mine, subprocess.Popen(["sleep", "60"]) as other:
        shims = [own, table.Process(other.pid)]
        records = [
            ShimRecord(pid=shim.pid, start_ticks=shim.start_ticks, boot_id="", child_pid=shim.pid, started_us=1)
            for shim in shims
        ]
        shared = [
            Status(attempt=f"att-{number}", phase=Phase.RUNNING, shim=record, devices=("GPU-a",))
            for number, record in enumerate(records)
        ]
        (found,) = offenders.find(RecordedNvml(Record("GPU-a", pids=[mine.pid, own.parent])), lambda: shared)
        mine.kill()
        other.kill()
    assert found.pid == own.parent
    assert "which att-0 and att-1 hold" in str(found)


def test_a_card_on_which_an_ended_attempt_hangs_is_used_no_more() -> None:
    env = {**os.environ, "TORCHYARD_ATTEMPT_ID": "att-9"}
    with subprocess.Popen(["sleep", "60"], env=env) as child:
        found = offenders.find(RecordedNvml(Record("GPU-a", pids=[child.pid]), Record("GPU-b")), list)
        child.kill()
    kept = offenders.keep_off([device("GPU-a"), device("GPU-b")], found)
    assert f"process {child.pid} of attempt att-9 outlives SIGKILL" in str(kept[0].unusable)
    assert [(each.code, each.message) for each in kept[0].findings] == [("outlives-kill", kept[0].unusable)]
    assert kept[1].unusable is None


def test_an_attempt_on_a_card_that_it_was_not_given_is_found_by_its_processes() -> None:
    own = table.Process(os.getpid())
    shim = ShimRecord(pid=own.pid, start_ticks=own.start_ticks, boot_id="", child_pid=own.pid, started_us=1)
    mine = Status(attempt="att-1", phase=Phase.RUNNING, shim=shim, devices=("GPU-a",))
    # Whatever a process says of itself: that could accuse another.
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "TORCHYARD_ATTEMPT_ID": "att-2"}) as child:
        nvml = RecordedNvml(Record("GPU-a", pids=[child.pid]), Record("GPU-b", pids=[child.pid, own.parent]))
        (found,) = trespass.find(nvml, lambda: [mine])
        assert trespass.confirmed([found], trespass.find(nvml, lambda: [mine])) == [found]
        child.kill()
    words = f"used GPU GPU-b, which it was not given (process {child.pid})"
    assert (found.attempt, found.words, found.finding()) == ("att-1", words, None)
    assert trespass.confirmed([], [found]) == []


def test_an_attempt_that_holds_more_than_its_share_is_found_and_its_neighbour_is_not() -> None:
    command = ["sh", "-c", "sleep 60 & echo $!; wait"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as greedy,
        subprocess.Popen(command, stdout=subprocess.PIPE) as modest,
    ):
        shims = [greedy, modest]
        pids = [int(shim.stdout.readline()) for shim in shims if shim.stdout]
        shared = [
            Status(
                attempt=f"att-{number}",
                phase=Phase.RUNNING,
                shim=ShimRecord(pid=shim.pid, start_ticks=0, boot_id="", child_pid=shim.pid, started_us=1),
                devices=("GPU-a",),
                gpu_share=10 * 2**30,
            )
            for number, shim in enumerate(shims)
        ]
        # What CUDA itself takes of a process is not the job's to avoid.
        held = dict(zip(pids, (12 * 2**30, 10 * 2**30 + 600 * 2**20), strict=True))
        (found,) = trespass.find(RecordedNvml(Record("GPU-a", pids=pids, held=held)), lambda: shared)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    told = found.finding()
    assert told is not None
    assert (told.code, told.message) == ("over-share", str(found))
    assert told.params == {"attempt": "att-0", "uuid": "GPU-a", "held": "12.0 GiB", "share": "10.0 GiB"}
    assert str(found) == "attempt att-0 held 12.0 GiB of GPU GPU-a, of which it has 10.0 GiB"


def device(uuid: str) -> Device:
    return Device(uuid=uuid, index=0, kind=DeviceKind.GPU, name="A100", memory=1)
