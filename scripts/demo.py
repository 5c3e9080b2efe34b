"""The demo: starts the stack, submits `examples/digits.yaml` over REST, follows it, shows what came out.

Run by `make demo`. Keeps everything below `.demo/`, and uses again what it finds there.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from torchyard import api
from torchyard.cli.format import latest
from torchyard.client.client import Client
from torchyard.exceptions import TorchYardError
from torchyard.stack import instance, up
from torchyard.states import JOB_FINAL
from torchyard.submission import drafts

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / ".demo"
SPEC = ROOT / "examples" / "digits.yaml"
DASHBOARD = ROOT / "service" / "dashboard" / "dist" / "index.html"
METRIC = "val/accuracy"
#: The final validation accuracy that the demo must pass.
THRESHOLD = 0.95
LOOK_S = 0.3
#: Seconds for which the checkpoint may take to reach the artifact store after the end.
STORE_S = 60.0

console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)


def main() -> int:
    """Exit code: 0 when the model passed the threshold."""
    os.environ["TORCHYARD_HOME"] = str(DEMO / "home")
    for name in ("TORCHYARD_URL", "TORCHYARD_TOKEN"):
        os.environ.pop(name, None)
    try:
        with stack() as url, Client(url) as client:
            return demonstrate(client, url)
    except TorchYardError as error:
        console.print(f"[red]demo: {error}[/]")
        return 1


@contextmanager
def stack() -> Iterator[str]:
    """The URL of a running stack; one that this demo started ends with it."""
    if owner := instance.running(DEMO / "home"):
        yield owner.url
        return
    console.print("starting Redis, service and worker …")
    url = up.detach(up.StackOptions(port=0, cpu_slots=None if gpus() >= 2 else 2, stop_jobs=True))
    try:
        yield url
    finally:
        up.down()
        console.print("stack stopped")


def gpus() -> int:
    """GPUs of this machine; without a driver none."""
    import pynvml

    try:
        pynvml.nvmlInit()
        return int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return 0


def demonstrate(client: Client, url: str) -> int:
    """Trains, and shows accuracy, checkpoint and dashboard."""
    prepared = drafts.prepare(drafts.from_file(SPEC))
    job = prepared.submit(client)
    console.print(f"job {job.number} ({job.name}) submitted over REST to {url}")
    job = follow(client, job)
    if job.state.value != "succeeded":
        console.print(f"[red]job {job.number} {job.state.value}: {job.error.message if job.error else ''}[/]")
        console.print(job.error.traceback or "" if job.error else "", markup=False)
        return 1
    accuracy = float(job.latest[METRIC])
    folder = pull(client, job)
    passed = accuracy >= THRESHOLD
    console.print(f"validation accuracy  [{'green' if passed else 'red'}]{accuracy:.2%}[/] (at least {THRESHOLD:.0%})")
    console.print(f"checkpoint           {folder}")
    built = "" if DASHBOARD.exists() else "  (not built: `make dashboard` needs Node 20 or the npm registry)"
    console.print(f"dashboard            {url}/{built}")
    console.print(f"look around          TORCHYARD_HOME={DEMO / 'home'} {ROOT / '.venv/bin/yard'} up")
    return 0 if passed else 1


def follow(client: Client, job: api.Job) -> api.Job:
    """Shows a bar until the job has ended."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[latest]}"), console=console) as bar:
        task = bar.add_task("waiting", total=None, latest="")
        while True:
            show(bar, task, job)
            if job.state in JOB_FINAL:
                return job
            try:
                job = client.wait(job.id, timeout_s=LOOK_S)
            except TimeoutError:
                job = client.job(job.id)


def show(bar: Progress, task: TaskID, job: api.Job) -> None:
    """Brings the bar up to date."""
    values = {name: value for name, value in job.latest.items() if name in {"train/loss", "val/loss", METRIC}}
    step, total = (job.progress.step, job.progress.total_steps) if job.progress else (0, None)
    bar.update(task, description=job.state.value, completed=step, total=total, latest=latest(values))


def pull(client: Client, job: api.Job) -> Path:
    """Brings the newest checkpoint into `.demo/`; raises TorchYardError when none gets stored."""
    deadline = time.monotonic() + STORE_S
    while not (stored := [each for each in client.checkpoints(job.id) if each.state == "stored"]):
        if time.monotonic() > deadline:
            raise TorchYardError(f"job {job.number} has no stored checkpoint")
        time.sleep(LOOK_S)
    return client.download_checkpoint(stored[-1], DEMO / f"job-{job.number}" / f"step-{stored[-1].step}")


if __name__ == "__main__":
    sys.exit(main())
