"""``python -m service.backup``: make a backup, or restore one; `yard backup` and `yard restore` are this."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from service.backup.create import create
from service.backup.exceptions import BackupError
from service.backup.manifest import Manifest, age_words
from service.backup.restore import Restored, restore
from service.settings import ServiceSettings
from torchyard.quantities import format_size


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _arguments(argv)
    try:
        settings = ServiceSettings.from_environment()
        if options.command == "create":
            _tell_made(create(settings, options.path, with_keys=options.with_keys), options)
        else:
            _tell_restored(restore(settings, options.path, replace=options.replace), options)
    except (BackupError, ValueError, OSError, SQLAlchemyError) as error:
        print(f"yard: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m service.backup", description=__doc__)
    parser.add_argument("command", choices=["create", "restore"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--with-keys", action="store_true", help="take the files of keys into the backup")
    parser.add_argument("--replace", action="store_true", help="move what is there aside")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser.parse_args(argv)


def _tell_made(made: Manifest, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(asdict(made), indent=2))  # noqa: T201
        return
    _line(f"{options.path}: {made.jobs} jobs, {made.blobs} files of jobs ({format_size(made.blob_bytes)})")
    if made.missing_blobs:
        _line(f"{len(made.missing_blobs)} files are missing in the store already: what names them cannot be restored")
    for name in () if made.keys_included else made.keys:
        _line(
            f"not in it: {name}, without which secrets cannot be read. Keep a copy elsewhere (--with-keys takes it in)"
        )


def _tell_restored(restored: Restored, options: argparse.Namespace) -> None:
    made = restored.manifest
    aside = str(restored.aside) if restored.aside else None
    if options.json:
        told = {"manifest": asdict(made), "aside": aside, "keys_wanted": restored.keys_wanted}
        print(json.dumps(told, indent=2))  # noqa: T201
        return
    _line(f"restored: {made.jobs} jobs, as of {age_words(made)}")
    if aside:
        _line(f"what was here lies in {aside}")
    for name in restored.keys_wanted:
        _line(f"put back the key {name}: secrets that are stored cannot be read without it")
    _line("start the service: jobs that ran when the backup was made go on from their newest checkpoints")


def _line(text: str) -> None:
    print(text)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
