"""``tensorboard``: the user's own TensorBoard over chosen jobs."""

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from torchyard.cli import common

if TYPE_CHECKING:
    from torchyard.api import Job
    from torchyard.client.client import Client
    from torchyard.export.mirror import Mirror

#: Seconds between two looks for new points.
EVERY_S: Final = 2.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(tensorboard)


def tensorboard(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB", help="Numbers or ids of jobs.")],
    port: Annotated[int, typer.Option(help="Port to listen on; 0 chooses a free one.", min=0, max=65535)] = 6006,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "localhost",
) -> None:
    """Show jobs in TensorBoard, which goes on as they do; Ctrl-C ends it.

    It is the one of the active Python. A job's own event files are shown as they are, else its metrics.
    """
    from torchyard.export import own_python

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    python = own_python.interpreter()
    own_python.check(python, "tensorboard")
    with common.connect() as client, tempfile.TemporaryDirectory(prefix="yard-tensorboard-") as folder:
        shown = [JobMirror(client, client.job(job), Path(folder)) for job in jobs]
        for each in shown:
            each.refresh()
        command = [str(python), "-m", "tensorboard.main", "--logdir", folder, "--host", host, "--port", str(port)]
        with subprocess.Popen([*command, "--reload_interval", "5"]) as server:
            try:
                _follow(server, shown)
            finally:
                server.terminate()
        raise typer.Exit(max(0, server.returncode))


def _follow(server: "subprocess.Popen[bytes]", shown: "Sequence[JobMirror]") -> None:
    """Refresh until the server ends; what cannot be read now is read later."""
    from torchyard.exceptions import TorchYardError

    while True:
        try:
            server.wait(EVERY_S)
            return
        except subprocess.TimeoutExpired:
            pass
        for each in shown:
            try:
                each.refresh()
            except TorchYardError as error:
                common.warn(str(error))


class JobMirror:
    """One job below TensorBoard's folder, as ``<number>-<name>``."""

    def __init__(self, client: "Client", job: "Job", root: Path) -> None:
        self._client = client
        self._job = job
        self._name = f"{job.number}-{job.name}"
        self._root = root
        self._mirror: Mirror | None = None
        self._cursor: str | None = None
        self._copies = 0
        self._done = False

    def refresh(self) -> None:
        """Bring what is new."""
        from torchyard.states import JOB_FINAL

        if self._done:
            return
        ended = self._client.job(self._job.id).state in JOB_FINAL
        if ended and self._mirror is None and self._download():
            self._done = True
            return
        self._add()
        if ended:
            self.close()

    def close(self) -> None:
        """Nothing more is to come."""
        self._done = True
        if self._mirror is not None:
            self._mirror.close()

    def _download(self) -> bool:
        """Bring the job's own event files, if it has left any and all of them are in the store."""
        found = [each for each in self._client.outputs(self._job.id) if "tfevents" in Path(each.name).name]
        found = [each for each in found if each.state != "deleted"]
        if any(each.state != "stored" for each in found):
            return False
        for each in found:
            self._client.download_output(self._job.id, each, self._root / self._name)
        return bool(found)

    def _add(self) -> None:
        from torchyard.export.mirror import Mirror
        from torchyard.export.rows import rows_of

        metrics = self._client.metrics(self._job.id, since=self._cursor, all_points=True)
        if metrics.reset and self._mirror is not None:
            self._mirror.close()
            shutil.rmtree(self._mirror.folder, ignore_errors=True)
            # TensorBoard remembers what a folder has shown: what replaces it goes into another.
            self._copies += 1
            self._mirror = None
        if self._mirror is None:
            self._mirror = Mirror(self._root / (f"{self._name}.{self._copies}" if self._copies else self._name))
        self._cursor = metrics.cursor
        self._mirror.add(rows_of(metrics))
