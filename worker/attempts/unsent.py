"""Folders of ended attempts of which something could not be brought to the service, for a fault in TorchYard.

``<worker home>/unsent/<attempt id>/``: moved there instead of being removed, so that the job's next attempt need not
wait until the fault is mended. They stay until somebody removes them.
"""

import logging
import os
from pathlib import Path
from typing import Final

from torchyard.injob import layout
from worker.attempts import files
from worker.attempts.folder import AttemptFolder

#: Written by the worker before it says that the attempt is settled, which lets it remove the folder.
_MARK: Final = f"{layout.YARD}/unsent"

logger = logging.getLogger(__name__)


def place(folder: AttemptFolder) -> Path:
    """Return where the folder goes once it is marked."""
    return folder.attempts.parent / "unsent" / folder.attempt_id


def mark(folder: AttemptFolder) -> None:
    """Have the folder moved instead of removed. Raises OSError."""
    os.close(os.open(folder.at(_MARK), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    files.fsync_folder(folder.at(layout.YARD))


def keep(folder: AttemptFolder) -> bool:
    """Move a marked folder to its place, only for whoever holds its lock; False: it isn't marked. Raises OSError."""
    if not folder.at(_MARK).exists():
        return False
    target = place(folder)
    target.parent.mkdir(exist_ok=True)
    target.parent.chmod(0o711)
    folder.move(target)
    logger.error("%s: not all of it came to the service: it lies in %s", folder.attempt_id, target)
    return True
