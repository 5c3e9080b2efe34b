"""Command ``pull``: a checkpoint, and the files that the job has written."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from torchyard.cli import common
from torchyard.cli.transfer import progress

if TYPE_CHECKING:
    from torchyard.api import Checkpoint, Job, Output
    from torchyard.client.client import Client
    from torchyard.client.pulling import PullResult

#: Seconds without a new file after which kept files are no longer waited for.
PATIENCE_S = 60.0
LOOK_S = 1.0


def pull(
    client: "Client",
    job: "Job",
    target: Path,
    checkpoint: "Checkpoint | None",
    *,
    files: bool,
    by_hand: bool,
    kept: bool,
) -> "PullResult":
    """Bring everything into the folder, and say what stays elsewhere, and why."""
    from torchyard.client import pulling

    found = _listed(client, job, kept=kept) if files else []
    layout = pulling.as_by_hand(target.resolve()) if by_hand else pulling.as_in_job(target)
    plan = pulling.planned(found, layout)
    total = (checkpoint.size if checkpoint else 0) + sum(file.size for file, _ in plan)
    with progress(total) as advance:
        before: list[Path] = []
        if checkpoint is not None:
            place = client.download_checkpoint(checkpoint, target / f"step-{checkpoint.step}", progress=advance)
            before = [place / file.name for file in checkpoint.files]
        pulled = pulling.pull(client, job.id, plan, base=target.resolve(), careful=by_hand, progress=advance)
    pulled.written[:0] = before
    _tell_others(job, found)
    return pulled


def _listed(client: "Client", job: "Job", *, kept: bool) -> "list[Output]":
    found = client.outputs(job.id, every=True)
    if not kept or not _on_nodes(found):
        return found
    from torchyard.cli.format import counted

    client.bring_outputs(job.id)
    common.note(
        counted(len(_on_nodes(found)), "file is on its way from its node", "files are on their way from their node")
    )
    left, deadline = len(_on_nodes(found)), time.monotonic() + PATIENCE_S
    while left and time.monotonic() < deadline:
        time.sleep(LOOK_S)
        found = client.outputs(job.id, every=True)
        if len(_on_nodes(found)) < left:
            left, deadline = len(_on_nodes(found)), time.monotonic() + PATIENCE_S
    return found


def _on_nodes(files: "list[Output]") -> "list[Output]":
    return [file for file in files if file.state == "on-node"]


def _tell_others(job: "Job", files: "list[Output]") -> None:
    from torchyard.cli.format import counted
    from torchyard.cli.outputs import path
    from torchyard.quantities import format_size

    for file in _on_nodes(files):
        wanted = "its node brings it when the store has room" if file.wanted else f"`yard pull --kept {job.number}`"
        size = format_size(file.size)
        common.note(f"{path(file)} ({size}) is on node {file.node}, {file.place}: {wanted}")
    if arriving := sum(file.state == "arriving" for file in files):
        common.note(f"{counted(arriving, 'file still arrives', 'files still arrive')}: pull again later")
    for file in files:
        if file.state == "deleted" and file.baseline:
            common.note(f"{path(file)} was removed by the job: it is left as it is here")
