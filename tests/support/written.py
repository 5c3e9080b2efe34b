"""An attempt's folder on a node, with a manifest, and a store in memory for what its job writes."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.wait import tick
from torchyard import wire
from torchyard.wire import Root
from worker.attempts import tree
from worker.attempts.kept import KeptFiles
from worker.exceptions import RequestRefusedError
from worker.forward.blobs import BlobSender
from worker.forward.outputs import OutputForwarder
from worker.forward.written import OutputLimits

FOLDERS = ("code", "output", "metrics", "marks", "checkpoints")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Store:
    """The service's end: what was reported, and the blobs."""

    def __init__(self) -> None:
        self.reports: list[wire.OutputReport] = []
        self.blobs: dict[str, bytes] = {}
        #: Refuse uploads, or reports, with a status.
        self.refuse = 0
        self.refuse_path = ""
        self.forgetful = False
        self.room: int | None = None
        #: The inbox, where blobs are placed instead of uploaded.
        self.inbox: Path | None = None
        self.linked: list[bool] = []

    def outputs(self, attempt: str, report: wire.OutputReport) -> wire.Missing:
        if self.refuse_path and any(self.refuse_path == file.path for file in (*report.files, *report.written)):
            raise RequestRefusedError(422, {}, "POST outputs")
        self.reports.append(report)
        stored = [*report.files, *(file for file in report.written if not file.on_node)]
        return wire.Missing(missing=sorted({file.sha256 for file in stored} - self.blobs.keys()), room=self.room)

    def blob_placed(self, sha256: str, name: str, size: int, *, linked: bool = False) -> None:
        assert self.inbox is not None
        self.linked.append(linked)
        self.blobs[sha256] = (self.inbox / name).read_bytes()

    def upload_blob(self, sha256: str, size: int, content: Iterator[bytes]) -> None:
        if self.refuse:
            raise RequestRefusedError(self.refuse, {}, "PUT blobs")
        if not self.forgetful:
            self.blobs[sha256] = b"".join(content)

    def named(self) -> dict[tuple[str, str], str]:
        """State by root and path, as the last report of each file said."""
        found: dict[tuple[str, str], str] = {}
        for report in self.reports:
            found.update({("output", file.path): "stored" for file in report.files})
            found.update({(file.root, file.path): "on-node" if file.on_node else "stored" for file in report.written})
            found.update({(place.root, place.path): "deleted" for place in report.deleted})
        return {(str(root), path): state for (root, path), state in found.items()}


class Job:
    """An attempt whose job writes files."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "attempts" / "att-1"
        for name in FOLDERS:
            (self.folder / "job" / name).mkdir(parents=True)
        (self.folder / "yard").mkdir()
        self.store = Store()
        self.sender = BlobSender(self.store)
        self.kept = KeptFiles(home)
        self.spawned: list[Any] = []

    def lay_out(
        self, snapshot: dict[str, bytes], carried: dict[tuple[Root, str], bytes] | None = None, **manifest: Any
    ) -> None:
        """Files of the snapshot, and of an attempt before, as `worker.launching.prepare` lays them out."""
        for path, data in snapshot.items():
            self.write(f"code/{path}", data)
        for (root, path), data in (carried or {}).items():
            self.write(f"{root}/{path}" if root is not Root.JOB else path, data)
        hashes = {(Root.CODE, path): sha256(data) for path, data in snapshot.items()}
        others = None if carried is None else {key: sha256(data) for key, data in carried.items()}
        tree.write(self.folder, tree.BaselineManifest(snapshot=hashes, carried=others, **manifest))
        (self.folder / "started").touch()
        tick(self.home)

    def write(self, path: str, data: bytes) -> Path:
        """What the program does, below ``job/``."""
        place = self.folder / "job" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        return place

    def forwarder(self, **limits: Any) -> OutputForwarder:
        return OutputForwarder(
            self.store,
            self.sender,
            "att-1",
            self.folder,
            owner=os.getuid(),
            kept=self.kept,
            limits=OutputLimits(**limits),
            spawn=self.spawned.append,
        )

    def end(self, **limits: Any) -> OutputForwarder:
        """Brings away all that there is."""
        forwarder = self.forwarder(**limits)
        while forwarder.pump():
            pass
        return forwarder
