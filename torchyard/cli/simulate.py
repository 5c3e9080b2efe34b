"""``simulate``: what a policy would do with a trace of jobs, or with what this box has run."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from torchyard.cli import common, extras


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(simulate)


def simulate(
    gpus: Annotated[int, typer.Option("--gpus", "-g", help="GPUs of each node.", min=1)],
    trace: Annotated[
        Path | None,
        typer.Argument(
            help="CSV with the columns submit_time, duration (seconds), num_gpus, and if you like user, project, "
            "priority, estimate, gpu_share."
        ),
    ] = None,
    nodes: Annotated[int, typer.Option(help="Nodes, all alike.", min=1)] = 1,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY",
            help="fair (unless you say otherwise), fifo, fifo-backfill, las, the oracles sjf and srtf, all of them "
            "(all), or a policy file. May be given several times, to compare.",
        ),
    ] = None,
    preemption_cost: Annotated[
        int | None,
        typer.Option(help="Seconds that a preempted job's GPUs lose when it starts again [default: 30]", min=0),
    ] = None,
    quotas: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML with `users` and `projects`: for each name (`*`: everybody else) its weight, max_gpus and "
            "max_gpu_hours (of any seven days).",
        ),
    ] = None,
    reservations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with start_time and end_time (seconds), gpus or nodes (numbers from 0; set apart by ;), and "
            "users and projects, or 1 in maintenance.",
        ),
    ] = None,
    gpu_memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of each GPU, for jobs with a gpu_share: 80GiB.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw queue and use of the GPUs over time, as .png or .svg.")
    ] = None,
    from_history: Annotated[
        bool, typer.Option("--from-history", help="Simulate what this box has run, instead of a trace.")
    ] = False,
    save_trace: Annotated[
        Path | None, typer.Option(help="With --from-history: keep the trace in this file, and reservations beside it.")
    ] = None,
    json: common.Json = False,
) -> None:
    """Show what a policy would do with a trace of jobs: the scheduler's own code, without a GPU.

    A job that needs more GPUs than a node has is spread over the fewest nodes, evenly. Jain's index is over users: of
    how much of their even share of the GPUs they got while they had jobs (1: nobody fell behind). Oracles know how long
    jobs will take; the others learn it once a job has run for a minute.
    """
    if (trace is None) != from_history:
        raise typer.BadParameter("give a trace, or --from-history")
    if save_trace is not None and not from_history:
        raise typer.BadParameter("there is nothing to save without --from-history", param_hint="--save-trace")
    extras.require("simulate", "service")
    options = [
        "--gpus",
        str(gpus),
        "--nodes",
        str(nodes),
        *(word for name in policy or [] for word in ("--policy", name)),
    ]
    options += [] if preemption_cost is None else ["--preemption-cost", str(preemption_cost)]
    options += [] if quotas is None else ["--quotas", str(quotas)]
    options += [] if reservations is None else ["--reservations", str(reservations)]
    options += [] if gpu_memory is None else ["--gpu-memory", gpu_memory]
    options += [] if plot is None else ["--plot", str(plot)]
    options += ["--json"] if json else []
    with tempfile.TemporaryDirectory(prefix="yard-") as folder:
        path = trace or save_trace or Path(folder) / "trace.csv"
        # What is given by hand comes last, and so counts.
        known = _history(path, gpus, nodes) if from_history else []
        code = _simulate(path, [*known, *options])
    if code:
        raise typer.Exit(code)


def _simulate(trace: Path, options: list[str]) -> int:
    # -P: a folder named `service` where the person happens to be is not ours.
    command = [sys.executable, "-P", "-m", "service.simulator", str(trace), *options]
    return subprocess.run(command, check=False).returncode


def _history(path: Path, gpus: int, nodes: int) -> list[str]:
    """Write what the box has run as a trace to this file, and its reservations beside it; return options for both."""
    from torchyard.exceptions import TorchYardError
    from torchyard.export import history

    with common.connect() as client:
        rows = list(history.rows(client))
        box, reservations = client.nodes(), client.reservations(past=True)
    if not rows:
        raise TorchYardError("no job with GPUs has ended here yet: give a trace instead of --from-history")
    with path.open("w", newline="") as file:
        history.write(rows, file)
    common.note(f"{len(rows):,} jobs that have ended here")
    names = history.numbered({node.name: len(node.devices) for node in box}, nodes)
    reserved = list(history.reservation_rows(reservations, names, gpus * nodes))
    memory = max([device.memory for node in box for device in node.devices], default=0)
    options = ["--gpu-memory", str(memory)]
    if reserved:
        beside = path.with_name(f"{path.stem}-reservations.csv")
        with beside.open("w", newline="") as file:
            history.write_reservations(reserved, file)
        common.note(f"{len(reserved):,} reservation{'s' * (len(reserved) > 1)}, maintenance counted in")
        options += ["--reservations", str(beside)]
    return options
