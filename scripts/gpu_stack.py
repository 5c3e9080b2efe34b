"""Steps with the whole product: service, Redis, worker and real jobs on the first device.

Each starts a stack of its own as a user does, by ``yard up``. They need what `torchyard[box]` installs, and the card
for themselves: while the worker of one stack has a card, those of others keep off it.
"""

import importlib.util
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from scripts import gpu_programs as programs
from scripts.gpu_steps import GIB, ROOT, Step, check, holding, smi
from tests.support.wait import until

#: Starts that are timed of each kind.
STARTS = 3


class Framework(NamedTuple):
    """A training of `examples/frameworks`, unchanged but for a rest in each step until it is stopped."""

    #: The module without which it does not start.
    module: str
    script: str
    words: tuple[str, ...]
    resume: tuple[str, ...] = ()


LIGHTNING = Framework("lightning", "lightning_trainer.py", ("--devices", "1", "--epochs", "6", "--samples", "1024"))
TRANSFORMERS = Framework("transformers", "huggingface_trainer.py", ("--epochs", "10", "--samples", "640"))
ACCELERATE = Framework(
    "accelerate",
    "accelerate_loop.py",
    ("--epochs", "6", "--samples", "1024"),
    ("--resume_from_checkpoint", "{checkpoint}"),
)


@contextmanager
def stack(gpu: bool, **settings: str) -> Iterator[Any]:
    """A running stack (`tests.support.stack.Stack`)."""
    from tests.support import stack as stacks

    with (
        tempfile.TemporaryDirectory(prefix="torchyard-gpu-") as folder,
        stacks.running(Path(folder) / "home", slots=None if gpu else 1, **settings) as running,
    ):
        yield running


def submit(yard: Any, program: str, *words: str) -> Any:
    """Submit a program by the command line, as a user does; return the job."""
    with tempfile.TemporaryDirectory() as code:
        (Path(code) / "train.py").write_text(program)
        done = yard.yard(
            "run", "--detach", "--json", "--python", sys.executable, *words, "--", "python", "train.py", cwd=Path(code)
        )
    check(done.returncode == 0, f"{done.stdout[-500:]}{done.stderr[-1500:]}")
    return yard.client.job(json.loads(done.stdout)["id"])


def spec(yard: Any, program: str, **fields: Any) -> Any:
    """Submit a program with fields of the spec that the command line has no option for."""
    with tempfile.TemporaryDirectory() as code:
        (Path(code) / "train.py").write_text(program)
        given = {"command": ["python", "train.py"], "launcher": "python", "python": sys.executable, **fields}
        (Path(code) / "job.json").write_text(json.dumps({**given, "code": "."}))
        done = yard.yard("submit", "job.json", "--json", cwd=Path(code))
    check(done.returncode == 0, f"{done.stdout[-500:]}{done.stderr[-1500:]}")
    return yard.client.job(json.loads(done.stdout)["id"])


def succeeded(yard: Any, job: Any, seconds: float = 100.0) -> Any:
    """Wait for a job's end; what it printed is the error if it has not succeeded."""
    ended = yard.client.wait(job.id, timeout_s=seconds)
    check(ended.state.value == "succeeded", f"{ended.error}\n{yard.log(ended).decode(errors='replace')[-1500:]}")
    return ended


def word(yard: Any, job: Any, beginning: str) -> str:
    """The line of rank 0's log that begins with a word."""
    return until(lambda: _line(yard, job, beginning), what=f"{beginning} in the log of job {job.number}") or ""


def _line(yard: Any, job: Any, beginning: str) -> str | None:
    for line in yard.log(job).decode(errors="replace").splitlines():
        if line.startswith(f"{beginning} "):
            return str(line)
    return None


def train(gpu: bool) -> str:
    """A recipe from submission to its end; the node's device, its load and the job's memory are told."""
    with stack(gpu) as yard:
        ((device, *_),) = [node.devices for node in yard.client.nodes()]
        recipe = {
            "model": "digits_cnn",
            "data": "digits",
            "epochs": 6,
            "precision": "bf16" if gpu else "fp32",
            "strategy": "ddp",
        }
        job = yard.client.submit({"recipe": recipe, "resources": {"gpus": 1}})
        ended = succeeded(yard, job)
        attempt = yard.client.attempts(job.id)[-1]
        accuracy = ended.latest["val/accuracy"]
        check(float(accuracy) > 0.9, f"val/accuracy {accuracy}")
        held = attempt.gpu_memory_peak
        check((held is not None and held > GIB // 8) == gpu, f"GPU memory {held}")
        if gpu:
            check(device.kind.value == "gpu" and device.name == smi("name")[0][0], str(device))
            now = until(lambda: _watched(yard), what="the device's memory")
            check(now.memory_used is not None, str(now))
        peak = "" if held is None else f", {held >> 20} MiB of the GPU"
        return f"{device.name}: val/accuracy {float(accuracy):.3f}{peak}"


def _watched(yard: Any) -> Any | None:
    device = yard.client.nodes()[0].devices[0]
    return device if device.memory_used is not None else None


def resume(gpu: bool) -> str:
    """The losses of a run that is stopped and goes on are those of one that is not, bit for bit."""
    with stack(gpu) as yard:
        undisturbed = succeeded(yard, submit(yard, programs.RESUME))
        job = submit(yard, programs.RESUME, "--name", "stopped")
        until(lambda: (found := yard.client.job(job.id).progress) and found.step >= 40, what="step 40", seconds=60)
        yard.client.cancel(job.id)
        yard.client.wait(job.id, timeout_s=60)
        second = succeeded(yard, yard.client.rerun(job.id))
        losses = [_losses(yard, each) for each in (undisturbed, job, second)]
        whole = losses[1] | losses[2]
        check(whole == losses[0], f"{len(losses[0])} losses, {len(whole)} of the stopped and continued one differ")
        check(min(losses[2]) > 30, f"it began again at step {min(losses[2])}")
        killed = submit(yard, programs.RESUME, "--name", "killed")
        until(lambda: (found := yard.client.job(killed.id).progress) and found.step >= 40, what="step 40", seconds=60)
        for part in ("worker", "service"):
            yard.kill(part)
        succeeded(yard, killed)
        check(_losses(yard, killed) == losses[0], "the losses of the run whose worker was killed differ")
        return f"{len(whole)} losses equal in all bits: undisturbed, stopped at {min(losses[2])}, worker killed"


def _losses(yard: Any, job: Any) -> dict[int, float]:
    text = yard.log(job).decode(errors="replace")
    return {int(step): float.fromhex(loss) for step, loss in re.findall(r"^loss (\d+) (\S+)$", text, re.MULTILINE)}


def sharing(gpu: bool) -> str:
    """Two jobs share a card at once; one that takes more than its share is ended, the other goes on."""
    with stack(gpu, TORCHYARD_TRESPASS="stop") as yard:
        fields = {"resources": {"gpus": 1, "gpu_share": "8GiB"}, "env": {"HOLD": str(2 * GIB)}}
        good = spec(yard, programs.SHARE, **fields)
        fields["env"] = {"HOLD": str(12 * GIB)}
        bad = spec(yard, programs.SHARE, **fields)
        ended = yard.client.wait(bad.id, timeout_s=60)
        check(ended.state.value == "failed" and ended.error is not None, f"{ended.state}")
        also = yard.client.job(good.id)
        check(also.state.value == "running", f"the neighbour is {also.state.value}")
        yard.client.cancel(good.id)
        yard.client.wait(good.id, timeout_s=60)
        return str(ended.error.message)[:150]


def foreign(gpu: bool) -> str:
    """A process from outside the queue keeps jobs off its card, is named, and a job starts once it has gone."""
    with stack(gpu, TORCHYARD_FOREIGN_MEMORY="10GiB") as yard:
        with holding(12 * GIB) as (pid, _):
            named = until(lambda: _named(yard, pid), what=f"process {pid} among the node's offenders", seconds=20)
            job = submit(yard, "print('ran')")
            why = until(lambda: _kept(yard, job), what="a reason why the job waits", seconds=20)
        began = time.monotonic()
        succeeded(yard, job)
        return f"{named[:90]}; {why[:60]}; started {time.monotonic() - began:.1f} s after"


def _named(yard: Any, pid: int) -> str | None:
    found = [line for node in yard.client.nodes() for line in node.offenders if str(pid) in line]
    return found[0] if found else None


def _kept(yard: Any, job: Any) -> str | None:
    why = yard.client.why(job.id)
    check(why.state.value == "queued", f"the job is {why.state.value}")
    return str(why.reasons[0].message) if why.reasons else None


def idle(gpu: bool) -> str:
    """A job whose card does nothing is ended at its limit, a busy one is not."""
    with stack(gpu, TORCHYARD_TELEMETRY_S="1") as yard:
        busy = spec(yard, programs.BUSY, resources={"gpus": 1, "gpu_share": "8GiB"}, idle_limit="15s")
        ended = yard.client.wait(busy.id, timeout_s=90)
        check(ended.state.value == "succeeded", f"the busy one: {ended.state.value} {ended.error}")
        lazy = spec(yard, programs.LAZY, resources={"gpus": 1}, idle_limit="10s")
        stopped = yard.client.wait(lazy.id, timeout_s=90)
        check(stopped.state.value == "failed", f"the idle one has {stopped.state.value}")
        return str(stopped.error.message)[:150]


def out_of_memory(gpu: bool) -> str:
    """CUDA's out of memory is a job's cause of failure, and the card is free again."""
    before = _used()
    with stack(gpu) as yard:
        job = yard.client.wait(submit(yard, programs.TOO_MUCH).id, timeout_s=60)
        check(job.state.value == "failed", job.state.value)
        until(lambda: _used() < before + 4096, what="the card's memory given back", seconds=20)
        return f"{job.error.cause}: {job.error.message[:100]}"


def _used() -> int:
    """MiB of the first card that are in use."""
    return int(smi("memory.used")[0][0])


def capped(gpu: bool) -> str:
    """Torch gives a job that `attach` follows no more than its share of a card: an error of its own, in time."""
    with stack(gpu, TORCHYARD_TRESPASS="stop") as yard:
        job = spec(yard, programs.CAPPED, resources={"gpus": 1, "gpu_share": "6GiB"})
        ended = yard.client.wait(job.id, timeout_s=60)
        word(yard, ended, "holds")
        check(ended.state.value == "failed" and ended.error is not None, f"{ended.state}")
        check(ended.error.cause == "out-of-memory", str(ended.error))
        return str(ended.error.message)[:150]


def isolated(gpu: bool) -> str:
    """NCCL makes its group in a network namespace that has a loopback interface alone."""
    with stack(gpu) as yard:
        fields = {"launcher": "torchrun", "network": "isolated", "resources": {"gpus": 1}}
        ended = succeeded(yard, spec(yard, programs.FIRST_STEP, **fields))
        took = float(word(yard, ended, "first").split()[1]) - ended.created_at.timestamp()
        return f"a first step of DDP over NCCL, {took:.1f} s after submission"


def recipe(gpu: bool) -> str:
    """A recipe that is stopped and goes on ends with the validation loss of one that is not, in all bits."""
    given = {
        "model": {"name": "digits_cnn"},
        "data": "digits",
        "epochs": 60 if gpu else 3,
        "deterministic": True,
        "precision": "bf16" if gpu else "fp32",
        "strategy": "ddp",
    }
    with stack(gpu) as yard:
        undisturbed = succeeded(yard, yard.client.submit({"recipe": given, "resources": {"gpus": 1}}))
        job = yard.client.submit({"recipe": given, "resources": {"gpus": 1}})
        until(lambda: (found := yard.client.job(job.id).progress) and found.step >= 20, what="step 20", seconds=60)
        yard.client.cancel(job.id)
        stopped = yard.client.wait(job.id, timeout_s=60)
        check(stopped.state.value == "cancelled", f"it had {stopped.state.value} before it was stopped")
        second = succeeded(yard, yard.client.rerun(job.id))
        step = yard.client.attempts(second.id)[-1].resumed_from_step
        check(bool(step), "it began again from the start")
        losses = [each.latest["val/loss"] for each in (undisturbed, second)]
        check(losses[0] == losses[1], f"val/loss {losses}")
        return f"stopped at step {step} of {second.progress.step}: val/loss {losses[1]!r}, as undisturbed"


def cancel(gpu: bool) -> str:
    """A job that computes and heeds no signal ends, and its memory is free."""
    with stack(gpu) as yard:
        job = spec(yard, programs.DEAF, resources={"gpus": 1}, grace="2s")
        word(yard, job, "holds")
        before = _used() if gpu else 0
        began = time.monotonic()
        yard.client.cancel(job.id)
        ended = yard.client.wait(job.id, timeout_s=60)
        took = time.monotonic() - began
        check(ended.state.value == "cancelled", ended.state.value)
        if gpu:
            until(lambda: _used() < before - 2048, what="its memory given back", seconds=10)
        return f"ended {took:.1f} s after a cancel with a grace of 2 s"


def assertion(gpu: bool) -> str:
    """A job whose kernel asserts fails by its own fault, and the next one runs on the same card."""
    with stack(gpu) as yard:
        job = yard.client.wait(submit(yard, programs.ASSERTION).id, timeout_s=60)
        check(job.state.value == "failed", job.state.value)
        succeeded(yard, submit(yard, programs.LOOK))
        (device,) = yard.client.nodes()[0].devices
        check(device.unusable is None, f"the card is kept from use: {device.unusable}")
        return f"{job.error.cause}: {job.error.message[:120]}"


def confined(gpu: bool) -> str:
    """A job without a GPU cannot open the card's file, one that has the card uses it."""
    with stack(gpu, TORCHYARD_CONFINE_GPUS="1", TORCHYARD_CGROUPS="1") as yard:
        (node,) = yard.client.nodes()
        check("gpus" in node.enforced, f"the kernel keeps no files from jobs here: {node.enforced} {node.unenforced}")
        seen = []
        for gpus in (1, 0):
            job = spec(yard, programs.LOOK, resources={"gpus": gpus})
            seen.append(word(yard, succeeded(yard, job), "sees"))
        check(seen == ["sees 1 opened", "sees 0 refused"], str(seen))
        return f"with the card: {seen[0]}; without: {seen[1]}"


def framework(training: Framework) -> Callable[[bool], str]:
    """Return the step that preempts a framework's training, which ends with the weights of an undisturbed one."""

    def run(gpu: bool) -> str:
        from tests.support import stopping
        from tests.support.user import User

        check(importlib.util.find_spec(training.module) is not None, f"{training.module} is not installed")
        with stack(gpu) as yard, tempfile.TemporaryDirectory() as folder:
            user = User(yard, Path(sys.prefix), Path(folder))
            script = ROOT / "examples" / "frameworks" / training.script

            def begin(name: str) -> Any:
                env = {"OMP_NUM_THREADS": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
                words = ("python", name, *training.words)
                return user.submit(*words, launcher="torchrun", env=env, resume={"args": training.resume})

            undisturbed = user.succeeds(begin(user.copy(script)))
            job = begin(user.slowed(script))
            stopping.preempted(user, job)
            ended = user.succeeds(job)
            step = yard.client.attempts(ended.id)[-1].resumed_from_step
            check(bool(step), "it began again from the start")
            sums = [re.findall(r"checksum of the weights:? (\S+)", user.log(each)) for each in (undisturbed, ended)]
            check(len(sums[0]) == 1 and sums[0] == sums[1], f"checksums of the weights: {sums}")
            return f"preempted at step {step} of {ended.progress.step}: weights {sums[1][0]}, as undisturbed"

    return run


def starts(gpu: bool) -> str:
    """Seconds to the end of a first DDP step: by hand, from the queue, and from its fork server."""
    taken: dict[str, list[float]] = {"by hand": [], "cold": [], "warm": []}
    with stack(gpu) as yard:
        until(lambda: _started(yard, warm=True)[1], what="a job from the fork server", seconds=90)
        for _ in range(STARTS):
            taken["by hand"].append(_by_hand())
            for kind in ("cold", "warm"):
                took, warm = _started(yard, warm=kind == "warm")
                check(warm == (kind == "warm"), f"a {kind} job was started otherwise")
                taken[kind].append(took)
    middle = {kind: statistics.median(each) for kind, each in taken.items()}
    shown = ", ".join(f"{kind} {value:.2f} s" for kind, value in middle.items())
    return f"{shown}: cold {middle['cold'] / middle['by hand']:.2f} x, warm {middle['warm'] / middle['by hand']:.2f} x"


def _by_hand() -> float:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(programs.FIRST_STEP)
        began = time.time()
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1", str(script)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split("first ")[1].split()[0]) - began


def _started(yard: Any, *, warm: bool) -> tuple[float, bool]:
    """Run a job; return its seconds to the first step, and whether it was forked from the server."""
    job = spec(yard, programs.FIRST_STEP, launcher="torchrun", resources={"gpus": 1}, warm_start=warm)
    ended = succeeded(yard, job)
    (timing,) = yard.client.timing(job.id)
    return float(word(yard, ended, "first").split()[1]) - ended.created_at.timestamp(), bool(timing.warm)


def _step(name: str, shows: str, run: Callable[[bool], str], limit_s: float = 150.0) -> Step:
    return Step(name=name, shows=shows, run=run, on_cpu=False, product=True, limit_s=limit_s)


#: On the CPU the tests of the product show the same; `--step NAME` runs each there, but for those that hold memory.
STACK_STEPS = (
    _step("stack-train", "a recipe by the whole product, the card and its memory told", train),
    _step("stack-resume", "stopped and continued, and with the worker killed: the same bits", resume, 240),
    _step("stack-share", "a job beyond its `gpu_share` is ended, its neighbour goes on", sharing),
    _step("stack-foreign", "a process from outside is named and waited for", foreign),
    _step("stack-idle", "a job whose card does nothing is ended, a busy one is not", idle, 200),
    _step("stack-oom", "CUDA's out of memory as a job's cause of failure", out_of_memory),
    _step("stack-capped", "torch keeps a job that `attach` follows within its `gpu_share`", capped),
    _step("stack-isolated", "NCCL in a network of its own", isolated),
    _step("stack-recipe", "a deterministic recipe, stopped and continued: the same bits", recipe),
    _step("stack-cancel", "a deaf job is ended, its memory free again", cancel),
    _step("stack-assert", "a kernel that asserts is its job's fault, the card goes on", assertion),
    _step("stack-confine", "the card's file is kept from a job that has no GPU", confined),
    _step("stack-lightning", "Lightning, preempted: the weights of an undisturbed run", framework(LIGHTNING)),
    _step("stack-transformers", "Transformers' Trainer, preempted: the same", framework(TRANSFORMERS)),
    _step("stack-accelerate", "a loop with Accelerate, preempted: the same", framework(ACCELERATE)),
    _step("stack-starts", "the first DDP step: by hand, from the queue, from the fork server", starts, 300),
)
