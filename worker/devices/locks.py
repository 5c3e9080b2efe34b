"""A machine-wide lock per GPU, so that two stacks on one box never share a card by accident."""

import fcntl
import getpass
import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from torchyard.wire import Device, DeviceKind, Finding, FindingCode
from worker.attempts import files

_MAX = 4096
#: What is told of the owner of a lock whose file does not.
_OWNER = {"user": "somebody", "home": "unknown", "pid": "?"}


def default_folder() -> Path:
    """The same folder for every user of the machine, whoever asks first."""
    shared = Path("/run/lock")
    try:
        mode = shared.stat().st_mode
    except OSError:
        mode = 0
    base = shared if mode & stat.S_IWOTH and mode & stat.S_ISVTX else Path("/tmp")  # noqa: S108 (sticky, and shared on purpose)
    return base / "torchyard-gpus"


class DeviceLocks:
    """The GPU locks of one worker home.

    A shim keeps the locks of its GPUs while no worker runs; they still name this home, and count as held.
    """

    def __init__(self, home: Path, folder: Path | None = None) -> None:
        self._home = str(home.resolve())
        self._folder = folder or default_folder()
        self._held: dict[str, int] = {}
        #: Keeps the folder when it is old: a lock without its file is none to the next worker.
        self._kept: int | None = None

    def apply(self, devices: Sequence[Device]) -> list[Device]:
        """Take the locks that are free; devices of another stack come back as `unusable`, naming the owner."""
        applied = [self._apply(device) for device in devices]
        if self._held and self._kept is None:
            with suppress(OSError):  # the locks hold without
                self._kept = files.hold(self._folder)
        return applied

    def descriptors(self, uuids: Sequence[str]) -> list[int]:
        """Open locks to pass to a shim."""
        held = [self._held[uuid] for uuid in uuids if uuid in self._held]
        return [*held, self._kept] if held and self._kept is not None else held

    def close(self) -> None:
        """Let go of all, except for what shims hold."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()
        if self._kept is not None:
            os.close(self._kept)
            self._kept = None

    def _apply(self, device: Device) -> Device:
        if device.kind is not DeviceKind.GPU or device.uuid in self._held:
            return device
        try:
            owner = self._take(device.uuid)
        except OSError as error:
            return device.unusable_for(self._unopened(error))
        if owner is None or owner.get("home") == self._home:
            return device
        return device.unusable_for(_owned(owner))

    def _unopened(self, error: OSError) -> Finding:
        message = f"its lock cannot be opened ({error}): mend {self._folder}"
        params = {"error": str(error), "folder": str(self._folder)}
        return Finding(code=FindingCode.LOCK, message=message, params=params)

    def _take(self, uuid: str) -> dict[str, object] | None:
        """Lock and sign the file, or tell who has."""
        descriptor = self._open(self._folder / f"{uuid.replace('/', '_')}.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _read(descriptor)
            os.close(descriptor)
            return owner
        content = {"home": self._home, "user": getpass.getuser(), "pid": os.getpid()}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(content).encode(), 0)
        self._held[uuid] = descriptor
        return None

    def _open(self, path: Path) -> int:
        """Open or make the file; without O_CREAT when it is there, which sticky folders forbid for others' files."""
        self._make_folder()
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            pass
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return os.open(path, flags)
        os.fchmod(descriptor, 0o666)
        return descriptor

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True)
        except FileExistsError:
            return
        self._folder.chmod(0o1777)


def _owned(owner: Mapping[str, object]) -> Finding:
    user, home, pid = (str(owner.get(name, or_else)) for name, or_else in _OWNER.items())
    message = f"the TorchYard of {user} (home {home}, process {pid}) owns it: stop that one, or share one stack"
    return Finding(code=FindingCode.OTHER_STACK, message=message, params={"user": user, "home": home, "pid": pid})


def _read(descriptor: int) -> dict[str, object]:
    try:
        content = json.loads(os.pread(descriptor, _MAX, 0))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
