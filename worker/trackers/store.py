"""MLflow's file store of an attempt, laid out from the files of an earlier one."""

import re
from pathlib import Path
from typing import Final

from torchyard.injob import layout
from worker.attempts.folder import AttemptFolder

#: Folders that a run must have, empty or not.
_PARTS: Final = ("metrics", "params", "tags", "artifacts")
_RUN: Final = re.compile(r"[0-9a-f]{32}")
#: Where experiments and runs keep their artifacts, in the folder of the attempt that made them.
_PLACE: Final = re.compile(rb"file://[^\n]*?/" + re.escape(layout.MLFLOW_STORE).encode() + rb"(?=/|\n)")
_MAX_META: Final = 2**16


def mend(folder: AttemptFolder) -> None:
    """Make a store that was laid out from an earlier attempt's files one of this attempt. Raises OSError."""
    store = folder.at(layout.MLFLOW_STORE)
    for meta in (*store.glob("*/meta.yaml"), *store.glob("*/*/meta.yaml")):
        if meta.is_symlink() or not meta.is_file() or meta.stat().st_size > _MAX_META:
            continue
        content = meta.read_bytes()
        moved = _PLACE.sub(lambda _: store.as_uri().encode(), content)
        if moved != content:
            meta.write_bytes(moved)
        if _RUN.fullmatch(meta.parent.name):
            _complete(meta.parent)


def _complete(run: Path) -> None:
    for part in _PARTS:
        (run / part).mkdir(exist_ok=True)
