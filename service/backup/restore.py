"""Restoring a backup into a home without a running service.

Everything is checked before anything changes. What is replaced is moved aside, never removed.
"""

import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from service.backup import databases, files, manifest
from service.backup.create import kept_key
from service.backup.exceptions import BackupError
from service.backup.manifest import Manifest
from service.db import schema
from service.db.leader import LOCK
from service.settings import ServiceSettings
from torchyard import home
from torchyard.exceptions import AlreadyRunningError, StartError
from torchyard.stack import instance


@dataclass(frozen=True, kw_only=True)
class Restored:
    """Outcome of a restore; `aside` is where the data lie that were there before."""

    manifest: Manifest
    aside: Path | None
    keys_wanted: list[str]
    """Keys that the service had when the backup was made, and that are not in this home."""


def restore(settings: ServiceSettings, backup: Path, *, replace: bool = False) -> Restored:
    """Restore a backup, a folder or an archive, into this home and its database, and migrate that.

    BackupError if a service runs here, if something is here and `replace` is not given, and if the backup cannot be
    read or is newer than this TorchYard.
    """
    root = home.root()
    with _alone(settings, root), _opened(backup, root) as folder:
        found = manifest.read(folder)
        _check(settings, folder, found, replace=replace)
        aside = _move_aside(settings)
        with _telling(aside):
            _lay_out(settings, folder, found)
            keys_wanted = _keys(folder, root, found)
    return Restored(manifest=found, aside=aside, keys_wanted=keys_wanted)


@contextmanager
def _alone(settings: ServiceSettings, root: Path) -> Iterator[None]:
    """Keep a stack from starting in the home; BackupError if a service runs on home or database."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        lock = instance.Instance(root)
        lock.acquire()
    except StartError as error:
        raise BackupError(str(error)) from error
    except AlreadyRunningError as error:
        raise BackupError(f"{error}; a backup is restored while no service runs") from error
    try:
        _refuse_running(settings)
        yield
    finally:
        lock.release()


def _refuse_running(settings: ServiceSettings) -> None:
    known = home.read_address()
    if known is not None and _is_service(int(known.get("pid", 0))):
        raise BackupError(f"a service runs here (process {known['pid']}, {known.get('url')}): end it first")
    if databases.kind_of(settings.database_url) == "postgresql" and _is_led(settings.database_url):
        raise BackupError("a service runs on this database: end it first")


def _is_service(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"service" in words


def _is_led(url: str) -> bool:
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return not connection.scalar(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": LOCK})
    finally:
        engine.dispose()


@contextmanager
def _opened(backup: Path, root: Path) -> Iterator[Path]:
    """Unpack an archive for as long as it is needed, beside where it goes."""
    if backup.is_dir():
        yield backup
        return
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=root) as folder:
        try:
            with tarfile.open(backup) as archive:
                archive.extractall(folder, filter="data")
        except (OSError, tarfile.TarError) as error:
            raise BackupError(f"{backup} is no backup that can be read: {error}") from error
        yield Path(folder)


def _check(settings: ServiceSettings, folder: Path, found: Manifest, *, replace: bool) -> None:
    kind = databases.kind_of(settings.database_url)
    if found.database != kind:
        raise BackupError(
            f"the backup is of a {found.database} database, and this service uses {kind}: set TORCHYARD_DATABASE_URL"
        )
    if not (folder / databases.NAMES[kind]).is_file():
        raise BackupError(f"{folder} lacks {databases.NAMES[kind]}: it is damaged, take another backup")
    _refuse_newer(found)
    databases.refuse_used(settings.database_url)
    if settings.data.is_dir() and any(settings.data.iterdir()) and not replace:
        raise BackupError(f"{settings.data} is not empty: --replace moves what is there aside")
    if (there := databases.files_of(settings.database_url)) and not replace:
        raise BackupError(f"there is a database {there[0]}: --replace moves it aside")


def _refuse_newer(found: Manifest) -> None:
    if not schema.knows(found.schema):
        raise BackupError(
            f"the backup was made by TorchYard {found.version}, whose tables are newer than this one's: restore it "
            "with that version, or a newer one"
        )


def _move_aside(settings: ServiceSettings) -> Path | None:
    """Move the data aside, and the files of a database that does not lie among them; return where they lie then."""
    data = settings.data
    stamp = time.strftime("%Y%m%dT%H%M%S")
    names = (f"{data.name}.replaced-{stamp}{end}" for end in chain([""], (f"-{n}" for n in count(2))))
    aside = next(path for name in names if not (path := data.with_name(name)).exists())
    if data.is_dir() and any(data.iterdir()):
        data.rename(aside)
    for path in databases.files_of(settings.database_url):
        aside.mkdir(mode=0o700, exist_ok=True)
        shutil.move(path, aside)
    return aside if aside.exists() else None


@contextmanager
def _telling(aside: Path | None) -> Iterator[None]:
    """Say of an error where the data lie that were there before: they are still the only ones."""
    try:
        yield
    except (BackupError, OSError, SQLAlchemyError) as error:
        if aside is None:
            raise
        raise BackupError(f"{error}; what was here lies in {aside}") from error


def _lay_out(settings: ServiceSettings, folder: Path, found: Manifest) -> None:
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = settings.artifacts
    files.mirror_blobs(folder / "artifacts" / "blobs", store / "blobs")
    files.mirror_logs(folder / "artifacts" / "logs", store / "logs")
    databases.load(folder / databases.NAMES[found.database], settings.database_url)
    schema.migrate(settings.database_url)


def _keys(folder: Path, root: Path, found: Manifest) -> list[str]:
    """Put the keys of the backup in their places; return those that are nowhere."""
    for name in found.keys if found.keys_included else ():
        if not (root / name).exists():
            home.write_private(root / name, kept_key(folder, name).read_text())
    return [name for name in found.keys if not (root / name).exists()]
