"""The attempt folder as the worker sees it: its paths, its lock, and the files it shares with the shim."""

import fcntl
import json
import os
import re
import secrets
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchyard.ids import AttemptId
from torchyard.injob import layout
from torchyard.states import StopReason
from torchyard.wire import Action, AttemptOrder, Result
from worker.attempts import files, removal
from worker.shim import table
from worker.shim.files import result_size

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_NONCE = re.compile(r"[0-9a-f]{32}")
#: An inventory holds the lock for an instant to see whether it is free, so one refusal proves nothing.
_LOCK_TRIES = 5
_LOCK_PAUSE_S = 0.01
_COMMAND_SIZE = 4096


@dataclass(frozen=True, kw_only=True)
class ShimRecord:
    """The shim's record of itself, written before the job's first instruction."""

    pid: int
    #: Start time of the shim in clock ticks since boot: with the boot id it proves that the pid is still the shim's.
    start_ticks: int
    boot_id: str
    #: The job's own process, leader of its session.
    child_pid: int
    started_us: int
    #: It was forked from a fork server.
    forked: bool = False
    #: When the shim began, and when it let the job go, by the clock since boot.
    begun_us: int = 0
    started_steady_us: int = 0
    #: The process between the shim and the job, where a fork server of the job's account has forked it.
    reaper_pid: int = 0
    reaper_start_ticks: int = 0

    def below(self, everyone: list[table.Process]) -> list[table.Process]:
        """The living processes of the job among these."""
        reapers = [each.pid for each in everyone if each.key == (self.reaper_pid, self.reaper_start_ticks)]
        return [each for root in (self.pid, *reapers) for each in table.below(everyone, root)]


@dataclass(frozen=True)
class AttemptFolder:
    """``<attempts>/<attempt id>/``; raises ValueError for an id that is not a plain name."""

    attempts: Path
    attempt_id: AttemptId

    def __post_init__(self) -> None:
        if not is_attempt_id(self.attempt_id):
            raise ValueError(f"{self.attempt_id!r} is not an attempt id")

    @property
    def path(self) -> Path:
        return self.attempts / self.attempt_id

    def at(self, name: str) -> Path:
        """A name of `torchyard.injob.layout` in this folder."""
        return self.path / name

    def create(self) -> None:
        """Make the folder and the worker's private one in it; harmless when they are there."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o755)
        self.at(layout.YARD).mkdir(exist_ok=True, mode=0o700)

    def clear(self, *names: str) -> None:
        """Remove what an earlier try has laid out. Raises OSError.

        It may be the job's user's already, who could keep it from going: it is moved first to where nobody else comes.
        """
        trash = Path(tempfile.mkdtemp(prefix="removed-", dir=self.at(layout.YARD)))
        for name in names:
            with suppress(FileNotFoundError):
                self.at(name).rename(trash / Path(name).name)
        removal.remove(trash)

    def try_lock(self) -> int | None:
        """An open descriptor that holds the attempt's lock, or None: somebody starts or runs the attempt.

        Raises FileNotFoundError when there is no folder.
        """
        for _ in range(_LOCK_TRIES):
            descriptor = os.open(self.at(layout.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if _lock(descriptor):
                if self._is_lock(descriptor):
                    return descriptor
            else:
                time.sleep(_LOCK_PAUSE_S)
            os.close(descriptor)
        return None

    def _is_lock(self, descriptor: int) -> bool:
        """Return whether the name still leads to the locked file: the folder may have been removed in between."""
        try:
            return os.path.samestat(os.fstat(descriptor), self.at(layout.LOCK).stat())
        except FileNotFoundError:
            return False

    def locked(self) -> bool:
        """Return whether somebody holds the lock right now."""
        try:
            descriptor = os.open(self.at(layout.LOCK), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not _lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def nonce(self) -> str:
        """The nonce of this node's claim: made once, and the same ever after.

        Not fsynced: a start that a power cut interrupts has run nothing. It then has another nonce, so the claim is
        refused, the folder goes, and the attempt is known to be dead by the boot.
        """
        path = self.at(layout.NONCE)
        with suppress(OSError, ValueError):
            if _NONCE.fullmatch(known := path.read_text()):
                return known
        value = secrets.token_hex(16)
        files.write_whole(path, value.encode(), durable=False)
        return value

    def started(self) -> bool:
        """Return whether a shim has been forked, or was about to be: the attempt must never be started again."""
        return self.at(layout.STARTED).exists()

    def mark_started(self) -> None:
        """Survives a power cut from here on."""
        os.close(os.open(self.at(layout.STARTED), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        files.fsync_folder(self.path)

    def write_launch(self, launch: dict[str, Any]) -> None:
        """Write what the shim is to do, without fsync: after a power cut there is no shim to read it."""
        files.reserve(self._spare(layout.COMMAND), _COMMAND_SIZE)
        files.write_whole(self.at(layout.LAUNCH), json.dumps(launch).encode(), durable=False)

    def read_launch(self) -> dict[str, Any] | None:
        """Return what `write_launch` wrote; None also when a power cut has torn it."""
        try:
            return files.read_json(self.at(layout.LAUNCH))
        except ValueError:
            return None

    def read_shim(self) -> ShimRecord | None:
        """Return the shim's record; None means that no instruction of the job has run."""
        path = self.at(layout.SHIM)
        try:
            record = files.read_json(path)
            return ShimRecord(**record) if record else None
        except (ValueError, TypeError):
            # Torn by a power cut, which no shim has outlived; but it was there, so the job had begun.
            began_us = path.stat().st_mtime_ns // 1000
            return ShimRecord(pid=0, start_ticks=0, boot_id="", child_pid=0, started_us=began_us)

    @property
    def result_pipe(self) -> Path:
        """The pipe through which the shim tells its result, before that lies here for good."""
        return self.path / f"{layout.RESULT}.pipe"

    def has_result(self) -> bool:
        return self.at(layout.RESULT).exists()

    def read_result(self) -> Result | None:
        """Return the attempt's result; None before its end."""
        content = files.read_json(self.at(layout.RESULT))
        return Result.model_validate(content) if content is not None else None

    def reserve_result(self, ranks: int = 0) -> None:
        """Take the space of its result while there is some. Raises OSError."""
        files.reserve(self._spare(layout.RESULT), result_size(ranks))

    def write_result(self, result: Result) -> None:
        """End the attempt for good, on a full disk too; only for whoever holds the lock."""
        files.write_reserved(self.at(layout.RESULT), result.model_dump_json().encode(), self._spare(layout.RESULT))

    def read_command(self) -> dict[str, Any] | None:
        """The order that was given last; None also for a torn one."""
        try:
            return files.read_json(self.at(layout.COMMAND))
        except ValueError:
            return None

    def write_command(self, given: AttemptOrder) -> None:
        """Tell the shim, on a full disk too: the job that filled it can be stopped. FileNotFoundError: no folder."""
        data = given.model_dump_json().encode()
        files.write_reserved(self.at(layout.COMMAND), data, self._spare(layout.COMMAND), durable=False)

    def write_failure(self, fingerprint: str, message: str) -> None:
        """Have the shim end the attempt, which fails for this reason. FileNotFoundError: no folder."""
        data = json.dumps({"action": "fail", "fingerprint": fingerprint, "message": message}).encode()
        files.write_reserved(self.at(layout.COMMAND), data, self._spare(layout.COMMAND), durable=False)

    def stop_asked(self) -> StopReason | None:
        """Return why the attempt is to stop; None if it is not."""
        command = self.read_command() or {}
        if command.get("action") not in {Action.STOP, Action.KILL}:
            return None
        return StopReason(command.get("reason") or StopReason.CANCEL)

    def _spare(self, name: str) -> Path:
        """Space that is kept for a file; the shim keeps that of the result."""
        return self.path / f"{name}.reserved"

    @property
    def temporary(self) -> Path:
        """The folder that `make_temporary` has made. Raises FileNotFoundError before that."""
        return self.at(layout.TMP).readlink()

    def make_temporary(self) -> None:
        """Make an empty folder for what the job puts down for a while, instead of the one of an earlier try.

        It lies with the node's other temporary files, not in here: the path of a socket ends at 108 bytes.
        Raises OSError.
        """
        self._remove_temporary()
        self.at(layout.TMP).symlink_to(tempfile.mkdtemp(prefix="torchyard-"))

    def _remove_temporary(self) -> None:
        link = self.at(layout.TMP)
        if link.is_symlink():
            removal.remove(self.temporary)
            link.unlink()

    def remove(self) -> None:
        """Remove the whole folder, and what the job has left of its temporary files; only for whoever holds the lock.

        See `finish_removals` for half a removal.
        """
        trash = self.attempts / f".removed-{self.attempt_id}"
        removal.remove(trash)
        self.move(trash)
        removal.remove(trash)

    def move(self, target: Path) -> None:
        """Move the whole folder, but for temporary files, to another name on the same file system; as `remove`."""
        self._remove_temporary()
        self.path.rename(target)


def is_attempt_id(text: str) -> bool:
    """Return whether an attempt can have this id: it is the name of its folder."""
    return _ID.fullmatch(text) is not None


def finish_removals(attempts: Path) -> None:
    """Remove what a worker that was killed while it removed folders has left of them."""
    for trash in attempts.glob(".removed-*"):
        removal.remove(trash)


def _lock(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def order(folder: AttemptFolder, given: AttemptOrder) -> bool:
    """Tell the shim what is wanted; it looks every 0.2 s. False when there is no such attempt here."""
    try:
        folder.write_command(given)
    except FileNotFoundError:
        return False
    return True
