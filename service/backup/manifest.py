"""Facts that a backup tells of itself: `manifest.json`, which is written last."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from service.backup.exceptions import BackupError
from torchyard import home

NAME: Final = "manifest.json"
#: The form of backups; a reader refuses newer ones.
FORMAT: Final = 1


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Facts of one backup; times are ISO 8601 in UTC, sizes bytes."""

    made_at: str
    version: str
    """Of TorchYard."""
    schema: str
    """Alembic's revision of the tables."""
    database: str
    """``sqlite`` or ``postgresql``."""
    installation: str
    jobs: int
    blobs: int
    blob_bytes: int
    missing_blobs: list[str]
    """Blobs that the database names and the store has lost."""
    keys: list[str]
    """Files of keys that the service has, relative to its home."""
    keys_included: bool
    settings: dict[str, str]
    """Variables of the service as they were set; passwords in addresses are left out."""
    format: int = FORMAT


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, whole or not at all."""
    home.write_private(folder / NAME, json.dumps(asdict(manifest), indent=2) + "\n")


def read(folder: Path) -> Manifest:
    """Read the manifest of a backup; raise BackupError for a folder without one and for a newer form."""
    path = folder / NAME
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        raise BackupError(f"{folder} is no backup, or was never finished: it has no {NAME}") from None
    except (OSError, ValueError) as error:
        raise BackupError(f"{path} cannot be read: {error}") from error
    if data.get("format", 0) > FORMAT:
        raise BackupError(f"{folder} was made by a newer TorchYard ({data.get('version')}): restore it with that")
    try:
        return Manifest(**data)
    except TypeError as error:
        raise BackupError(f"{path} is no manifest of a backup: {error}") from error


def age_words(manifest: Manifest) -> str:
    """Return when a backup was made, in words."""
    return f"{datetime.fromisoformat(manifest.made_at):%Y-%m-%d %H:%M} UTC"
