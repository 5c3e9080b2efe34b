"""One stack per home: a lock that the supervisor and its programs hold as long as one of them lives."""

import fcntl
import json
import os
import pwd
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from torchyard.exceptions import AlreadyRunningError, StartError

#: Bytes that the lock file has from its first owner on.
SIZE = 512
#: Seconds for which the leftovers of a killed supervisor may take to end.
LEFTOVERS_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Owner:
    """The supervisor of a running stack; `started` tells it from a later process with the same id."""

    pid: int
    started: int
    url: str


class Instance:
    """The lock of a home folder."""

    def __init__(self, home: Path) -> None:
        """Open the lock; StartError for root in another account's home, who could not read what root writes there."""
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.geteuid() == 0 and (owner := home.stat().st_uid) != 0:
            raise StartError(_whose(home, owner))
        self._path = home / "stack.lock"
        self.descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self) -> None:
        """Take the lock; raises AlreadyRunningError naming the one who has it."""
        deadline = time.monotonic() + LEFTOVERS_S
        while not self._try():
            owner = read(self._path)
            if (owner is not None and _alive(owner)) or time.monotonic() > deadline:
                raise AlreadyRunningError(_who(self._path.parent, owner))
            time.sleep(0.1)
        self.announce("")

    def announce(self, url: str) -> None:
        """Write down who has the lock, and where its service will listen.

        One write of the same length takes the place of what was there: whoever reads meanwhile sees the old or the new.
        Programs of the stack hold this very file, so none can be put in its place.
        """
        owner = Owner(pid=os.getpid(), started=_start_ticks(os.getpid()), url=url)
        size = max(SIZE, os.fstat(self.descriptor).st_size)
        os.pwrite(self.descriptor, json.dumps(asdict(owner)).encode().ljust(size), 0)

    def release(self) -> None:
        """Give the lock back."""
        os.close(self.descriptor)

    def _try(self) -> bool:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def running(home: Path) -> Owner | None:
    """The supervisor that runs in a home folder, if one does."""
    owner = read(home / "stack.lock")
    return owner if owner is not None and _alive(owner) and not is_free(home) else None


def is_free(home: Path) -> bool:
    """Return whether nothing of a stack is left in a home folder."""
    path = home / "stack.lock"
    if not path.exists():
        return True
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def read(path: Path) -> Owner | None:
    """Process that wrote the lock file last."""
    try:
        return Owner(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _alive(owner: Owner) -> bool:
    return _start_ticks(owner.pid) == owner.started


def _start_ticks(pid: int) -> int:
    """Start of a process, in ticks since boot; -1 for one that is gone or only waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return -1
    return -1 if fields[0] == "Z" else int(fields[19])


def _whose(home: Path, owner: int) -> str:
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = f"#{owner}"
    return (
        f"{home} belongs to {name}, who could not read what root writes there: do this as {name} (`sudo -u {name} env "
        f"TORCHYARD_HOME={home} …`); the units of `yard install` are started by `systemctl`"
    )


def _who(home: Path, owner: Owner | None) -> str:
    if owner is None:
        return f"a stack is starting or ending in {home}: wait for it"
    return (
        f"a stack is already running in {home} (process {owner.pid}, {owner.url or 'starting'}): use it, "
        "end it with `yard down`, or set TORCHYARD_HOME to another folder"
    )
