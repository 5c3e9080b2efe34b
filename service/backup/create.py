"""Making a backup while the service writes.

Blobs come first, then the database, then the blobs that came meanwhile: so the copy of the database names no file that
the backup lacks. Until the manifest is there a backup counts as not made; one that is brought up to date stays the old
one until the new copy of the database has replaced it.
"""

import fcntl
import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import torchyard
from service.backup import databases, files, manifest
from service.backup.databases import Contents
from service.backup.exceptions import BackupError
from service.backup.manifest import Manifest
from service.settings import ServiceSettings
from torchyard import home, settingsfile

#: Archives, by the end of their names.
ARCHIVES: Final = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz"}
#: The database is copied again where a blob that it names was removed in between.
_TRIES: Final = 3
_SECRET_WORDS: Final = ("TOKEN", "PASSWORD", "SECRET", "KEY")


def create(settings: ServiceSettings, target: Path, *, with_keys: bool = False) -> Manifest:
    """Make a backup: an archive where the name ends so, else a folder, which is brought up to date if it is there."""
    mode = next((mode for end, mode in ARCHIVES.items() if target.name.endswith(end)), None)
    if mode is None:
        return _folder(settings, target, with_keys=with_keys)
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=settings.data) as folder:
        made = _folder(settings, Path(folder), with_keys=with_keys)
        _pack(Path(folder), target, mode)
    return made


def _pack(folder: Path, target: Path, mode: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    descriptor = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]  # mode is one of two
                for path in sorted(folder.iterdir()):
                    archive.add(path, path.name)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _folder(settings: ServiceSettings, folder: Path, *, with_keys: bool) -> Manifest:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    with _locked(folder):
        before = _earlier(folder)
        kind = databases.kind_of(settings.database_url)
        copy = folder / databases.NAMES[kind]
        fresh = copy.with_name(f".{copy.name}.new")
        artifacts = folder / "artifacts"
        files.mirror_blobs(settings.artifacts / "blobs", artifacts / "blobs")
        contents, missing = _consistent(settings, fresh, artifacts / "blobs")
        if before is not None and before.installation != contents.installation:
            fresh.unlink()
            raise BackupError(f"{folder} holds the backup of another installation: choose another folder")
        files.mirror_logs(settings.artifacts / "logs", artifacts / "logs")
        keys = _keys(settings, folder, with_keys=with_keys)
        fresh.replace(copy)
        made = _manifest(kind, contents, missing, keys, with_keys=with_keys)
        manifest.write(folder, made)
        files.prune_blobs(artifacts / "blobs", contents.blobs.keys())
    return made


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise BackupError(f"another backup is being written to {folder}: wait for it") from None
    finally:
        os.close(descriptor)


def _earlier(folder: Path) -> Manifest | None:
    """Return the manifest of the backup that is brought up to date; BackupError for a folder of other things."""
    entries = {path.name for path in folder.iterdir()}
    if manifest.NAME in entries:
        return manifest.read(folder)
    ours = {"artifacts", "keys", *databases.NAMES.values()} | {f".{name}.new" for name in databases.NAMES.values()}
    if entries - ours:
        raise BackupError(f"{folder} holds other things than a backup: choose a new or empty folder")
    return None


def _consistent(settings: ServiceSettings, fresh: Path, blobs: Path) -> tuple[Contents, list[str]]:
    """Copy the database until all blobs that it names are there; return what it holds, and the blobs that are lost."""
    store = settings.artifacts / "blobs"
    for _ in range(_TRIES):
        contents = databases.dump(settings.database_url, fresh)
        lacking = [each for each in contents.blobs if not (blobs / each[:2] / each).exists()]
        missing = [each for each in lacking if not files.bring_blob(store, blobs, each)]
        if not missing:
            break
    return contents, sorted(missing)


def _keys(settings: ServiceSettings, folder: Path, *, with_keys: bool) -> list[str]:
    """Take the key of the secrets into the backup, if it is wanted there; return where it lies, if there is one."""
    key = settings.secret_key.absolute()
    if not key.is_file():
        return []
    root = home.root()
    name = str(key.relative_to(root)) if key.is_relative_to(root) else str(key)
    if with_keys:
        home.write_private(kept_key(folder, name), key.read_text())
    return [name]


def kept_key(folder: Path, name: str) -> Path:
    """Return the place of a key in a backup."""
    return folder / "keys" / name.lstrip("/")


def _manifest(kind: str, contents: Contents, missing: list[str], keys: list[str], *, with_keys: bool) -> Manifest:
    return Manifest(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        version=torchyard.__version__,
        schema=contents.schema,
        database=kind,
        installation=contents.installation,
        jobs=contents.jobs,
        blobs=len(contents.blobs),
        blob_bytes=sum(contents.blobs.values()),
        missing_blobs=missing,
        keys=keys,
        keys_included=with_keys,
        settings=_settings(),
    )


def _settings() -> dict[str, str]:
    """Return our variables, without those that hold secrets, and addresses without their passwords."""
    ours = {name: value for name, value in os.environ.items() if name.startswith(settingsfile.PREFIX)}
    plain = {name: value for name, value in ours.items() if not any(word in name for word in _SECRET_WORDS)}
    return {name: _without_password(value) for name, value in sorted(plain.items())}


def _without_password(value: str) -> str:
    scheme, mark, rest = value.partition("://")
    credentials, at, place = rest.rpartition("@")
    if not (mark and at):
        return value
    return f"{scheme}://{credentials.partition(':')[0]}@{place}"
