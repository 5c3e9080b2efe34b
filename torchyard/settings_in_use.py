"""Settings that a running program has, so that `yard config check` tells which of the file do not count yet.

Values are kept as hashes: addresses of databases hold passwords.
"""

import hashlib
import json
import logging
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from torchyard import home, settingsfile

_log = logging.getLogger(__name__)


def publish(folder: Path, given: BaseModel, options: Collection[str]) -> None:
    """Write what this program has been given into its folder.

    Settings that a variable or an option has said (`options`) are named: the file does not change them. A program on a
    full disk runs all the same: then it takes away what it had published before.
    """
    names = type(given).model_fields
    fixed = sorted(name for name in names if name in options or settingsfile.is_set(name))
    said = {"values": _hashes(given), "fixed": fixed, "file": settingsfile.named()}
    file = folder / home.IN_USE_FILE
    try:
        home.write_private(file, json.dumps(said))
    except OSError as error:
        _log.warning("yard config check cannot know what runs: %s", error)
        with suppress(OSError):
            file.unlink(missing_ok=True)


def pending(folder: Path, fresh: BaseModel) -> settingsfile.Changes:
    """Return which settings of a program that runs with this folder differ from those that are read now.

    None of those which a variable of this process says: it reaches no program that runs. OSError if the program has
    not published its own, or to other accounts only; LookupError if a variable has it read another file.
    """
    in_use = json.loads((folder / home.IN_USE_FILE).read_text())
    if in_use["file"] != settingsfile.named():
        raise LookupError(in_use["file"] or "the usual settings file")
    known: dict[str, str] = in_use["values"]
    differ = {name for name, value in _hashes(fresh).items() if known.get(name, value) != value}
    ours = {name for name in differ if settingsfile.is_set(name)}
    return settingsfile.sort_changes(type(fresh), differ - ours - set(in_use["fixed"]))


def _hashes(given: BaseModel) -> dict[str, str]:
    return {name: _hash(value) for name, value in given.model_dump(mode="json").items()}


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
