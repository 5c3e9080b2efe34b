"""``checkpoints average``: one model from the mean of several checkpoints."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common, extras

if TYPE_CHECKING:
    from torchyard.api import Checkpoint
    from torchyard.client.client import Client


def average(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB", help="Jobs by number or id.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: a plain state dict.")] = Path("model.pt"),
    last: Annotated[int, typer.Option(help="So many of each job's newest stored checkpoints.", min=1)] = 1,
) -> None:
    """Average the models of several checkpoints into one file.

    Checkpoints along one run, or of runs from the same start; averaging unrelated runs is worth nothing. The file
    holds a plain state dict of CPU tensors.
    """
    extras.require("checkpoints average", "trainer")
    with tempfile.TemporaryDirectory(prefix="yard-average-") as name, common.connect() as client:
        folders = [
            client.download_checkpoint(without_the_rest(each), Path(name) / each.id)
            for job in jobs
            for each in newest(client, job, last)
        ]
        command = [sys.executable, "-P", "-m", "trainer.average", "--out", str(out.absolute()), *map(str, folders)]
        ended = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    if ended.returncode:
        from torchyard.exceptions import TorchYardError

        raise TorchYardError(ended.stderr.strip().rpartition("\n")[2] or f"averaging ended with {ended.returncode}")
    common.note(f"the mean of {len(folders)} checkpoint(s)")
    common.line(out)


def newest(client: "Client", job: str, count: int) -> "list[Checkpoint]":
    """A job's newest stored checkpoints; raises TorchYardError when there are fewer."""
    from torchyard.exceptions import TorchYardError

    stored = [each for each in client.checkpoints(job) if each.state == "stored"]
    if len(stored) < count:
        raise TorchYardError(
            f"job {job} has {len(stored)} stored checkpoint(s), not {count}: "
            "say a smaller --last, or keep more with checkpoint.keep_last"
        )
    return stored[-count:]


def without_the_rest(checkpoint: "Checkpoint") -> "Checkpoint":
    """The checkpoint without what the mean does not need, where the model has a file of its own."""
    from torchyard.injob.state import MODEL

    model = [file for file in checkpoint.files if file.name == MODEL]
    return checkpoint.model_copy(update={"files": model}) if model else checkpoint
