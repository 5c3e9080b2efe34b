"""A node's attempts without a service: a control plane in a folder, which several processes can share."""

import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.support.processes import MARK
from tests.support.wait import until
from torchyard import ids
from torchyard.spec import JobSpec
from torchyard.wire import Carry, Device, DeviceKind, FileRef, Go, Launch, Prepared, Restore, Result
from worker.attempts import files
from worker.attempts.folder import AttemptFolder
from worker.exceptions import MissingBlobError, SecretsError
from worker.launching import environment
from worker.launching.launcher import AttemptLauncher


class FolderControl:
    """Keeps launches, claims and blobs as files; a claim is decided by whoever creates its file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        #: What the jobs' secrets are worth; None: they cannot be had.
        self.values: dict[str, str] | None = {}
        for name in ("launches", "claims", "blobs", "prepared", "go"):
            (root / name).mkdir(parents=True, exist_ok=True)

    def assign(self, attempt: str, launch: Launch) -> None:
        (self.root / "launches" / attempt).write_text(launch.model_dump_json())

    def launch(self, attempt: str) -> Launch | None:
        path = self.root / "launches" / attempt
        return Launch.model_validate_json(path.read_bytes()) if path.exists() else None

    def claim(self, attempt: str, nonce: str) -> Launch | None:
        path = self.root / "claims" / attempt
        try:
            with path.open("x") as file:
                file.write(nonce)
        except FileExistsError:
            if path.read_text() != nonce:
                return None
        return self.launch(attempt)

    def secrets(self, attempt: str, nonce: str) -> dict[str, str]:
        assert (self.root / "claims" / attempt).read_text() == nonce
        if self.values is None:
            raise SecretsError("there is no secret API_KEY of the job's owner")
        return self.values

    def prepared(self, attempt: str, where: Prepared) -> Go | None:
        """Go as soon as a file says so; void without a launch."""
        files.write_whole(self.root / "prepared" / f"{attempt}.json", where.model_dump_json().encode())
        go = self.root / "go" / f"{attempt}.json"
        if not (self.root / "launches" / attempt).exists():
            return None
        return Go.model_validate_json(go.read_bytes()) if go.exists() else Go(go=False)

    def say_go(self, attempt: str, address: str = "127.0.0.1") -> Go:
        """All nodes are prepared."""
        told = self.told(attempt)
        go = Go(go=True, address=address, port=told.port)
        (self.root / "go" / f"{attempt}.json").write_text(go.model_dump_json())
        return go

    def told(self, attempt: str) -> Prepared:
        """What the node has said of its part, once it has."""
        path = self.root / "prepared" / f"{attempt}.json"
        return until(lambda: Prepared.model_validate_json(path.read_bytes()) if path.exists() else None)

    def fetch_blob(self, sha256: str, target: Path) -> None:
        blob = self.root / "blobs" / sha256
        if not blob.exists():
            raise MissingBlobError
        shutil.copyfile(blob, target)

    def put(self, path: str, data: bytes, mode: int = 0o644) -> FileRef:
        """Stores a file; returns the reference that a snapshot or checkpoint would hold."""
        digest = hashlib.sha256(data).hexdigest()
        (self.root / "blobs" / digest).write_bytes(data)
        return FileRef(path=path, size=len(data), sha256=digest, mode=mode)


class Box:
    """One worker home below a folder, and the attempts that were assigned to it."""

    def __init__(self, root: Path, control: FolderControl | None = None, **launcher: Any) -> None:
        self.attempts = root / "attempts"
        self.attempts.mkdir(parents=True, exist_ok=True)
        self.control = control or FolderControl(root / "control")
        self.launcher = AttemptLauncher(
            attempts=self.attempts,
            control=self.control,
            injob=environment.install_injob(root),
            one_trust_domain=True,
            passed=[MARK],
            **launcher,
        )

    def assign(
        self,
        *,
        files: dict[str, str | bytes] | None = None,
        restore: dict[str, bytes] | None = None,
        restore_local: Restore | None = None,
        slots: int = 0,
        unix_user: str | None = None,
        node_rank: int = 0,
        carry: Carry | None = None,
        **spec: Any,
    ) -> AttemptFolder:
        """Assigns a job with this code and spec; by default a plain program.

        Each attempt has an id of its own on the whole machine: processes are found and killed by it, and other
        workers of the test run have attempts too.
        """
        attempt = ids.new_id("att")
        code = [self.control.put(path, _bytes(text), 0o755) for path, text in (files or {}).items()]
        saved = [self.control.put(path, data) for path, data in (restore or {}).items()]
        defaults: dict[str, Any] = {"launcher": "none", "resources": {"gpus": slots}}
        launch = Launch(
            attempt=attempt,
            job="job-1",
            number=1,
            spec=JobSpec.model_validate(defaults | spec),
            user="ada",
            unix_user=unix_user,
            node_rank=node_rank,
            devices=[
                Device(uuid=f"cpu-{index}", index=index, kind=DeviceKind.CPU_SLOT, name="CPU", memory=0)
                for index in range(slots)
            ],
            code=code if files is not None else None,
            restore=Restore(checkpoint="ckpt-1", step=7, files=saved) if restore is not None else restore_local,
            carry=carry,
        )
        self.control.assign(attempt, launch)
        return AttemptFolder(self.attempts, attempt)

    def run(self, seconds: float = 120.0, **assigned: Any) -> tuple[AttemptFolder, Result]:
        """Assigns, starts, and waits for the end."""
        folder = self.assign(**assigned)
        self.launcher.start(folder.attempt_id)
        return folder, ended(folder, seconds)


def ended(folder: AttemptFolder, seconds: float = 60.0) -> Result:
    """The result of an attempt, once it has one and its shim is gone."""
    until(lambda: folder.has_result() and not folder.locked(), seconds=seconds, what=f"the end of {folder.attempt_id}")
    result = folder.read_result()
    assert result is not None
    return result


def log(folder: AttemptFolder, name: str = "rank-0.log") -> str:
    """A log of an attempt as text."""
    return (folder.at("logs") / name).read_text(errors="replace")


def lines(path: Path) -> list[str]:
    """The lines of a file that the job appends to; none before it exists."""
    return path.read_text().splitlines() if path.exists() else []


#: For command lines: the interpreter of the tests, which has torch.
PYTHON = sys.executable


def python(code: str) -> list[str]:
    """A command that runs a piece of Python without the site packages, so that it starts fast."""
    return [PYTHON, "-I", "-S", "-u", "-c", code]


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def alive(pid: int) -> bool:
    """Whether there is such a process, zombies included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
