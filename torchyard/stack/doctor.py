"""Checks of this machine's stack: each finding names what is wrong, and the mend."""

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from torchyard.exceptions import TorchYardError
from torchyard.home import LIMITS_FILE
from torchyard.injob.cadence import FLOOR
from torchyard.quantities import format_size
from torchyard.stack import access, filesystem, redis

#: Of the worker, where `yard install` has installed it.
SETTINGS_FOLDER: Final = Path("/etc/torchyard")
_MEND: Final = re.compile("`[^`]+`")


class Stores(NamedTuple):
    """The places where the service keeps what it stores, by its settings."""

    data: Path
    key: Path
    """File of the key that secrets are encrypted with."""


class Floors(NamedTuple):
    """Free bytes of disk that service and worker keep, by their settings."""

    service: int = FLOOR
    worker: int = FLOOR


def findings(
    root: Path,
    worker: Path,
    owner: int | None = None,
    stores: Stores | None = None,
    floors: Floors | None = None,
    *,
    own_redis: bool = True,
) -> list[str]:
    """Return what is wrong with the stack of a home folder and its worker's folder, one sentence each.

    `owner` is the account that has the home, by default the caller's; `stores` is where the service keeps what it
    stores, by default below the home; `floors` is how much disk stays free; `own_redis` is whether the stack starts a
    Redis of its own.
    """
    owner = os.geteuid() if owner is None else owner
    stores = stores or Stores(root / "service", root / "service" / "secrets.key")
    floors = floors or Floors()
    return [
        *_home(root, owner),
        *_private_files(root, stores.key, owner),
        *_accounts(worker),
        *_disk(floors.service, root, *([] if stores.data.is_relative_to(root) else [stores.data])),
        *_disk(floors.worker, worker),
        *_unsent(worker / "unsent"),
        *(_redis() if own_redis else ()),
    ]


def without_told(more: Iterable[str], found: Iterable[str]) -> list[str]:
    """Return those of further findings whose mend none of `found` has: it is the same file, in other words."""
    told = {mend for each in found for mend in _MEND.findall(each)}
    return [each for each in more if told.isdisjoint(_MEND.findall(each))]


def _home(root: Path, owner: int) -> Iterator[str]:
    if not root.exists():
        return
    status = root.stat()
    if status.st_uid != owner:
        yield f"{access.described(root)} belongs to another account than yours: start the stack as its owner"
    if status.st_mode & 0o077:
        yield f"{access.described(root)} is open to other accounts, database and tokens with it: `chmod 0700 {root}`"
    try:
        filesystem.refuse_network(root)
    except TorchYardError as error:
        yield str(error)


def _private_files(root: Path, key: Path, owner: int) -> Iterator[str]:
    """Tokens, keys and settings that others could read: a mode counts also where a folder above keeps them out."""
    # The key may lie among the settings.
    files = dict.fromkeys([root / "admin.token", root / "node.token", key, *_entries(SETTINGS_FOLDER)])
    for path in filter(Path.is_file, files):
        status = path.stat()
        if status.st_mode & 0o077:
            anew = "`python -m service rotate-secrets`" if path == key else "make a new token"
            yield f"{access.described(path)} can be read by other accounts: `chmod 0600 {path}`, and {anew}"
        if status.st_uid not in {0, owner}:
            yield f"{access.described(path)} belongs to another account, which can exchange it: `chown root {path}`"


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if os.access(folder, os.R_OK | os.X_OK) and folder.is_dir() else []


def _accounts(worker: Path) -> Iterator[str]:
    if os.geteuid() != 0:
        return
    for problem in (access.attempts_problem(worker / "attempts"), access.interpreter_problem()):
        if problem is not None:
            yield problem
    for folder in filter(Path.exists, (worker, worker / "attempts")):
        if folder.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            yield f"{access.described(folder)} shows other accounts whose jobs are there: `chmod 0711 {folder}`"


def _disk(floor: int, *folders: Path) -> Iterator[str]:
    for folder in filter(Path.exists, folders):
        free = shutil.disk_usage(folder).free
        if free < floor:
            yield (
                f"{folder}: {format_size(free)} of disk are free, and no job starts with less than "
                f"{format_size(floor)} (TORCHYARD_DISK_FLOOR): delete files there"
            )
        error = filesystem.refusal(folder)
        if error is not None and not isinstance(error, PermissionError):
            yield (
                f"{folder} takes no new file ({error.strerror}), however much is free: delete files if df -i shows no "
                f"inode left there, else mend the disk"
            )


def _unsent(folder: Path) -> Iterator[str]:
    attempts = _entries(folder)
    if attempts:
        yield (
            f"{folder}: not all of {', '.join(path.name for path in attempts)} came to the service, for a fault in "
            f"TorchYard that each one's logs/launcher.log names: copy from there what its owner needs, then remove it"
        )


def _redis() -> Iterator[str]:
    try:
        redis.find_executable()
    except TorchYardError as error:
        yield str(error)


def words(root: Path, worker: Path, *, installed: bool = False) -> list[str]:
    """Return what was looked at, as whom jobs run, and which limits hold for them.

    `installed` is whether units of a whole machine run the worker.
    """
    accounts = access.INSTALLED_WORDS if installed else access.accounts_words()
    return [f"home: {root}", f"jobs: {worker / 'attempts'}", accounts, _limits_words(worker)]


def _limits_words(worker: Path) -> str:
    """Say what the worker told at its last start."""
    try:
        return (worker / LIMITS_FILE).read_text().strip()
    except OSError:
        return "limits of jobs: not known, as no worker has started here yet"
