"""Calls of the client about files: snapshots, checkpoints and outputs."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from torchyard import api
from torchyard.client import download
from torchyard.client.calls import Calls, part
from torchyard.files import links

if TYPE_CHECKING:
    from torchyard import snapshot


class FileCalls(Calls):
    """Snapshots, checkpoints and outputs, as part of `torchyard.Client`."""

    def checkpoints(self, job: str) -> list[api.Checkpoint]:
        """The job's checkpoints, by step."""
        return list(self._pages(api.Checkpoint, f"/jobs/{part(job)}/checkpoints", {}))

    def outputs(self, job: str, *, every: bool = False) -> list[api.Output]:
        """The files that the job has written and that can be downloaded, one of each name.

        `every`: also further files of one name (of other folders and nodes), those that are not here, and those that
        the job has removed.
        """
        return list(self._pages(api.Output, f"/jobs/{part(job)}/outputs", {"all": "true" if every else None}))

    def bring_outputs(self, job: str) -> None:
        """Ask the nodes for the files that stay there since they are too large for the store."""
        self._send("POST", f"/jobs/{part(job)}/outputs/bring")

    def download_checkpoint(
        self, checkpoint: api.Checkpoint, folder: Path, *, progress: Callable[[int], None] = lambda _bytes: None
    ) -> Path:
        """Bring a checkpoint's files into a folder, and continue what an earlier call left unfinished."""
        for file in checkpoint.files:
            path = f"/checkpoints/{part(checkpoint.id)}/files/{quote(file.name)}"
            target = download.inside(folder, file.name)
            download.fetch(self.connection, path, target, size=file.size, sha256=file.sha256, progress=progress)
        return folder

    def download_output(
        self, job: str, output: api.Output, folder: Path, *, progress: Callable[[int], None] = lambda _bytes: None
    ) -> Path:
        """Bring one output file into a folder, under its own name."""
        return self.download_to(job, output, download.inside(folder, output.name), progress=progress)

    def download_to(
        self, job: str, output: api.Output, target: Path, *, progress: Callable[[int], None] = lambda _bytes: None
    ) -> Path:
        """Bring one output file to a path."""
        path = f"/jobs/{part(job)}/outputs/{quote(output.name)}?root={output.root}&node_rank={output.node_rank}"
        download.fetch(self.connection, path, target, size=output.size, sha256=output.sha256, progress=progress)
        if stat.S_ISLNK(output.mode):
            _link(target, output.name)
        elif output.mode & 0o100:
            target.chmod(target.stat().st_mode | 0o111)
        return target

    def upload_snapshot(
        self, code: snapshot.CodeSnapshot, *, progress: Callable[[int], None] = lambda _bytes: None
    ) -> str:
        """Upload what the service lacks of a code folder, and return the snapshot's id for `JobSpec.code`."""
        files = [file.ref().model_dump(mode="json") for file in code.files]
        made = self._post(api.MissingBlobs, "/snapshots", {"files": files})
        by_hash = {file.sha256: file for file in code.files}
        for sha256 in made.missing:
            self._upload(made.id, by_hash[sha256])
            progress(by_hash[sha256].size)
        if not made.committed:
            self._send("POST", f"/snapshots/{made.id}/commit")
        return made.id

    def prune_snapshots(self, *, discarded: bool = False) -> api.RemovedCode:
        """Remove your snapshots that no job is on; with `discarded`, also those of discarded jobs alone."""
        return self._post(api.RemovedCode, "/snapshots/prune", {"discarded": discarded})

    def _upload(self, snapshot_id: str, file: snapshot.CodeFile) -> None:
        from torchyard import snapshot

        path = f"/snapshots/{snapshot_id}/blobs/{file.sha256}"
        headers = {"Content-Length": str(file.size), "Content-Type": "application/octet-stream"}
        self.connection.request("PUT", path, content=lambda: snapshot.pieces(file.source), headers=headers)


def _link(target: Path, name: str) -> None:
    """Put a link in the place of its text, unless it leads out of the folder that `name` is relative to."""
    text = target.read_text()
    if links.stays_inside(name, text):
        target.unlink()
        target.symlink_to(text)
