"""The steps: each returns what it saw, in a line, or raises. `gpu` says whether there is one; some need it."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scripts import gpu_programs as programs

ROOT: Final = Path(__file__).parents[1]
GIB: Final = 2**30
#: Memory that the driver and CUDA hold beside what was asked for.
BESIDE: Final = GIB


class StepError(Exception):
    """The step did not see what it should."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: what it shows, its function, and whether it says anything without a GPU."""

    name: str
    shows: str
    run: Callable[[bool], str]
    on_cpu: bool = True
    product: bool = False
    """Whether it needs all of `torchyard[box]`."""
    limit_s: float = 120.0


def smi(query: str, what: str = "gpu") -> list[list[str]]:
    """Rows of ``nvidia-smi --query-<what>``."""
    command = ["nvidia-smi", f"--query-{what}={query}", "--format=csv,noheader,nounits"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout
    return [[field.strip() for field in line.split(",")] for line in text.splitlines() if line.strip()]


def check(right: bool, words: str) -> None:
    """Raise StepError with the words unless it is right."""
    if not right:
        raise StepError(words)


def discovery(gpu: bool) -> str:
    from worker.devices import discovery, nvml

    found = discovery.discover(nvml.load(), None if gpu else 2)
    if gpu:
        told = {uuid: (int(index), int(memory)) for uuid, index, memory in smi("uuid,index,memory.total")}
        seen = {each.uuid: (each.index, each.memory >> 20) for each in found}
        check(seen.keys() == told.keys(), f"NVML {seen}, nvidia-smi {told}")
        for uuid, (index, size) in seen.items():
            check(index == told[uuid][0] and abs(size - told[uuid][1]) < 1024, f"NVML {seen}, nvidia-smi {told}")
    return ", ".join(f"{each.name} ({each.memory >> 30} GiB)" for each in found)


def telemetry(gpu: bool) -> str:
    from worker.devices import nvml
    from worker.devices.telemetry import Sampler

    (sample,) = Sampler(nvml.load() if gpu else None, list).sample()
    if gpu:
        ((used, temperature, _),) = smi("memory.used,temperature.gpu,power.draw")[:1]
        check(abs(sample.values["gpu.0.memory_used"] / 2**20 - float(used)) < 1024, f"memory: {sample.values}, {used}")
        check(abs(sample.values["gpu.0.temperature"] - float(temperature)) <= 5, f"temperature: {temperature}")
    return ", ".join(f"{name} {value:.4g}" for name, value in sorted(sample.values.items()))


@contextmanager
def holding(size: int, **variables: str) -> Iterator[tuple[int, list[str]]]:
    """A process that holds memory of the GPU: its pid, and the words that it printed."""
    code = programs.HOLD.format(bytes=size)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    ) as process:
        assert process.stdout is not None
        try:
            words = process.stdout.readline().split()
            check(bool(words), "the process that should hold memory has ended")
            yield process.pid, words
        finally:
            process.kill()


def processes(_gpu: bool) -> str:
    from worker.devices import nvml

    library = nvml.load()
    assert library is not None
    with holding(GIB) as (pid, _):
        held = {at: size for card in nvml.cards(library) for at, size in nvml.processes(library, card).items()}
        told = {int(at): int(used) for at, used in smi("pid,used_memory", "compute-apps") if used.isdigit()}
        check(pid in held, f"process {pid} is not among {held}; nvidia-smi lists {told}: another PID namespace?")
        check((held[pid] or 0) >= GIB, f"it holds {held[pid]} bytes")
        check(pid in told, f"nvidia-smi lists {told}")
    return f"process {pid} holds {(held[pid] or 0) >> 20} MiB, nvidia-smi says {told[pid]} MiB"


def by_uuid(_gpu: bool) -> str:
    uuid = smi("uuid")[-1][0]
    with holding(2**20, CUDA_VISIBLE_DEVICES=uuid) as (_, words):
        check(words[2] == "1", f"it sees {words[2]} devices")
        check(uuid.endswith(words[1].removeprefix("GPU-")), f"asked for {uuid}, sees {words[1]}")
    return f"CUDA_VISIBLE_DEVICES={uuid} leads there"


@contextmanager
def box(**launcher: Any) -> Iterator[Any]:
    """A worker's home whose service is a folder (`tests.support.node.Box`)."""
    from tests.support.node import Box

    with tempfile.TemporaryDirectory(prefix="torchyard-gpu-") as folder:
        yield Box(Path(folder), **launcher)


def job(home: Any, gpu: bool, program: str, seconds: float = 100.0, **spec: Any) -> tuple[Any, Any]:
    """Run a program as a job of this box on the first device: its folder, and its result."""
    from tests.support.node import ended
    from worker.devices import discovery, nvml

    given: dict[str, Any] = {"files": {"train.py": program}, "command": ["python", "train.py"], "slots": 1}
    folder = home.assign(**{**given, "launcher": "torchrun", **spec})
    if gpu:
        devices = discovery.discover(nvml.load())[:1]
        launch = home.control.launch(folder.attempt_id)
        home.control.assign(folder.attempt_id, launch.model_copy(update={"devices": devices}))
    home.launcher.start(folder.attempt_id)
    return folder, ended(folder, seconds)


def printed(folder: Any, word: str) -> str:
    """The line of rank 0 that begins with a word."""
    from tests.support.node import log

    text = log(folder)
    for line in text.splitlines():
        if line.startswith(f"{word} "):
            return line
    raise StepError(f"rank 0 did not print {word}: {(text or log(folder, 'launcher.log'))[-1500:]}")


def attempt(gpu: bool) -> str:
    with box() as home:
        folder, result = job(home, gpu, programs.TRAIN)
        line = printed(folder, "trained")
        check(result.exit_code == 0, f"exit code {result.exit_code}")
        check(("cuda" in line) == gpu, line)
    return line


def two_ranks(gpu: bool) -> str:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(programs.TRAIN)
        done = subprocess.run([*command, sys.executable, str(script)], check=False, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("trained 2")]
    check(len(lines) == 2, f"{done.stdout[-500:]}{done.stderr[-1500:]}")
    check(all(("cuda" in line) == gpu for line in lines), str(lines))
    return lines[0]


def recipe(gpu: bool, sees: str = "float32", ranks: int = 1, **changes: Any) -> str:
    """Train a small recipe by the trainer on one device, and check what its layers' outputs were."""
    model: Any = {"name": "mlp", "hidden": [64]}
    given = {"model": model, "data": {"name": "synthetic", "samples": 256, "validation_samples": 64}, "epochs": 1}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "recipe.json").write_text(json.dumps({**given, "strategy": "ddp", **changes}))
        (Path(folder) / "train.py").write_text(programs.RECIPE)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        done = subprocess.run(
            [*command, "train.py", "recipe.json"],
            check=False,
            capture_output=True,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "0" if gpu else ""},
        )
    check(done.returncode == 0, f"{done.stdout[-300:]}{done.stderr[-1500:]}")
    told = [line for line in done.stdout.splitlines() if line.startswith(("peak ", "seen "))]
    words = " ".join(told).split()
    check(sees in words and ("cuda" if gpu else "cpu") in words, f"expected {sees}: {told}")
    return ", ".join(told)


def stall(gpu: bool) -> str:
    with box() as home:
        folder, _ = job(home, gpu, programs.STALL, launcher="python")
        return printed(folder, "stall")


def snapshot(gpu: bool) -> str:
    with box() as home:
        folder, _ = job(home, gpu, programs.SNAPSHOT, launcher="python")
        line = printed(folder, "stored")
        check(line.split()[2:] == ["changed", "since", "equal"], line)
        return line


def bench(_gpu: bool) -> str:
    """The comparison of strategies, which on one device are one."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--strategies", "dp", "ddp", "--devices", "1", "--batch", "64", "--out", folder]
        counts = ["--steps", "10", "--repeats", "3", "--warm-up", "5"]
        command = [sys.executable, "-m", "trainer.bench", *words, *counts]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
        check(done.returncode == 0, f"{done.stdout[-500:]}{done.stderr[-2500:]}")
        (row,) = csv.DictReader((Path(folder) / "strategies.csv").open())
    check(row["strategy"] == "single", str(row))
    return f"{float(row['samples_per_second']):.0f} samples/s"


def report(gpu: bool) -> str:
    with box() as home:
        folder, _ = job(home, gpu, programs.REPORT, launcher="python")
        return printed(folder, "report")


def forkserver(gpu: bool) -> str:
    from worker.launching.warm import ForkServers, key_of

    with tempfile.TemporaryDirectory() as folder:
        servers = ForkServers(log=Path(folder) / "forkserver.log")
        try:
            with box(fork_servers=servers) as home:
                cold, _ = job(home, gpu, programs.TRAIN)
                key = key_of(cold.read_launch())
                check(key is not None and servers.make(key), servers.log.read_text()[-1500:])
                warm, result = job(home, gpu, programs.TRAIN)
                check(warm.read_shim().forked, "the second job was not forked")
                check(printed(warm, "trained") == printed(cold, "trained"), printed(warm, "trained"))
                check(result.exit_code == 0, f"exit code {result.exit_code}")
                if gpu:
                    _no_context(servers)
                return printed(warm, "trained")
        finally:
            servers.close()


def _no_context(servers: Any) -> None:
    pids = [server.process.pid for server in servers._servers.values()]
    for pid in pids:
        opened = [str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()]
        check(not any("nvidia" in each for each in opened), f"the server has opened {opened}")


def out_of_memory(gpu: bool) -> str:
    from torchyard.failures import recognition

    with box() as home:
        folder, result = job(home, gpu, programs.TOO_MUCH)
        check(result.exit_code != 0, "it has succeeded")
        words = (folder.at("logs") / "rank-0.log").read_text(errors="replace")
        found = recognition.recognise(words)
        check(found is not None, words[-1500:])
        assert found is not None
        return f"recognised as {found.name}"


def share(_gpu: bool) -> str:
    from torchyard.ids import AttemptId
    from torchyard.wire import Phase
    from worker.devices import nvml
    from worker.devices.telemetry import GpuMemory
    from worker.monitoring.inventory import Status
    from worker.shim.files import now_us

    library = nvml.load()
    assert library is not None
    memory, attempt_id = GpuMemory(), AttemptId("att-1")
    with holding(2 * GIB) as (pid, _):
        held = [nvml.processes(library, card) for card in nvml.cards(library)[:1]]
        status = Status(attempt=attempt_id, phase=Phase.RUNNING)
        memory.see(status, now_us(), {pid}, held)
    peak = memory.peak(attempt_id)
    check(peak is not None and 2 * GIB <= peak < 2 * GIB + BESIDE, f"{peak} bytes were seen of 2 GiB, held by {held}")
    return f"{(peak or 0) >> 20} MiB seen of a process that holds 2,048"


def xids(_gpu: bool) -> str:
    from worker.devices import nvml
    from worker.devices.xids import Xids

    library = nvml.load()
    assert library is not None
    listening, stopped = Xids(library), threading.Event()
    thread = threading.Thread(target=listening._listen, args=(library, stopped))
    thread.start()
    stopped.wait(2.5)
    check(thread.is_alive(), "the driver takes no registration for its events")
    stopped.set()
    thread.join(10)
    return f"listening; {len(listening.newest())} faults seen"


def _recipe(sees: str = "float32", **changes: Any) -> Callable[[bool], str]:
    return lambda gpu: recipe(gpu, sees, **changes)


_CNN: Final = {"model": "digits_cnn"}
_DP_LOSS: Final = {"name": "dp", "loss_in_model": True}
_BF16_HOOK: Final = {"name": "ddp", "hook": "bf16"}
#: Without a GPU a step is left out where tests of the trainer show the same on the CPU.
STEPS: Final = (
    Step(name="discovery", shows="the devices, as nvidia-smi lists them", run=discovery),
    Step(name="telemetry", shows="memory and temperature, as nvidia-smi tells them", run=telemetry),
    Step(name="processes", shows="who holds how much memory of a GPU", run=processes, on_cpu=False),
    Step(name="by-uuid", shows="a job's UUID leads to that card", run=by_uuid, on_cpu=False),
    Step(name="attempt", shows="launcher, shim, torchrun and one DDP step", run=attempt),
    Step(name="two-ranks", shows="two ranks share one card over gloo", run=two_ranks, on_cpu=False),
    Step(name="ddp", shows="strategy ddp at world size 1, NCCL where there is a GPU", run=_recipe(), on_cpu=False),
    Step(name="ddp-bf16", shows="ddp with AMP in bf16", run=_recipe("bfloat16", precision="bf16"), on_cpu=False),
    Step(name="ddp-fp16", shows="ddp with AMP in fp16", run=_recipe("float16", precision="fp16"), on_cpu=False),
    Step(name="ddp-tf32", shows="ddp with TF32", run=_recipe("tf32", tf32=True), on_cpu=False),
    Step(name="ddp-compile", shows="ddp, compiled", run=_recipe(compile=True), on_cpu=False, limit_s=240),
    Step(
        name="channels-last",
        shows="a CNN in NHWC layout",
        run=_recipe("NHWC", channels_last=True, **_CNN),
        on_cpu=False,
    ),
    Step(name="hook", shows="gradients in bf16 on the way", run=_recipe(strategy=_BF16_HOOK), on_cpu=False),
    Step(name="fsdp", shows="strategy fsdp (FSDP2)", run=_recipe(strategy="fsdp")),
    Step(
        name="fsdp-bf16", shows="fsdp in bf16", run=_recipe("bfloat16", strategy="fsdp", precision="bf16"), on_cpu=False
    ),
    Step(name="single", shows="strategy single", run=_recipe(strategy="single"), on_cpu=False),
    Step(name="dp", shows="DataParallel of one device", run=_recipe(strategy="dp"), on_cpu=False),
    Step(name="dp-loss", shows="DataParallel, the loss in the model", run=_recipe(strategy=_DP_LOSS), on_cpu=False),
    Step(
        name="parameter-server",
        shows="a worker on the card, its server on the CPU",
        run=_recipe(ranks=2, strategy="parameter_server"),
        on_cpu=False,
    ),
    Step(name="bench", shows="`yard bench` on one device: ResNet-50, fp32", run=bench, on_cpu=False, limit_s=200),
    Step(name="snapshot", shows="a save in the background holds the weights of its step", run=snapshot),
    Step(name="checkpoint", shows="how long a save holds the training up", run=stall),
    Step(name="report", shows="report of device scalars waits for nothing", run=report),
    Step(
        name="forkserver",
        shows="no CUDA in the server, a first step in its child",
        run=forkserver,
        on_cpu=False,
        limit_s=200,
    ),
    Step(name="out-of-memory", shows="CUDA's out of memory is told apart", run=out_of_memory, on_cpu=False),
    Step(name="gpu-share", shows="over-use of a share is seen", run=share, on_cpu=False),
    Step(name="xids", shows="the driver's faults can be listened to", run=xids, on_cpu=False),
)
