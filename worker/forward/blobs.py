"""Files on their way into the artifact store: placed in its inbox where the node can, uploaded where it cannot."""

import logging
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from torchyard import wire
from worker.attempts import content
from worker.exceptions import RequestRefusedError

logger = logging.getLogger(__name__)


class BlobSink(Protocol):
    """Service that takes blobs."""

    def blob_placed(self, sha256: str, name: str, size: int, *, linked: bool = False) -> None: ...
    def upload_blob(self, sha256: str, size: int, content: Iterator[bytes]) -> None: ...


class BlobSender:
    """Brings open files into the store. `use_inbox` names the inbox once the service has told where it is."""

    def __init__(self, store: BlobSink) -> None:
        self._store = store
        self._inbox: Path | None = None

    def use_inbox(self, inbox: str, probe: str) -> bool:
        """Place files in the inbox from now on if this node sees the very same folder and may write there."""
        folder = Path(inbox)
        try:
            same = bool(probe) and (folder / wire.INBOX_PROBE).read_text() == probe
        except (OSError, ValueError):
            same = False
        self._inbox = folder if same and os.access(folder, os.W_OK) else None
        return self._inbox is not None

    def send(self, descriptor: int, sha256: str, size: int) -> None:
        """Bring a file's first `size` bytes into the store. Raises WorkerError, OSError."""
        if self._inbox is not None and self._place(self._inbox, descriptor, sha256, size):
            return
        self._store.upload_blob(sha256, size, content.read_chunks(descriptor, size))

    def link(self, descriptor: int, sha256: str, size: int) -> bool:
        """Give an open file that nobody writes any more to the store as it is, by a second name in the inbox; False
        where it has to be copied: to another file system, or of another user than the service's. The first name is the
        caller's to remove. Raises `UnavailableError`.
        """
        if self._inbox is None:
            return False
        target = self._inbox / f"{sha256}.{secrets.token_hex(8)}"
        try:
            if not os.fstat(descriptor).st_uid == self._inbox.stat().st_uid == os.geteuid():
                return False  # the service would have to copy it all the same
            content.second_name(descriptor, target)
            self._store.blob_placed(sha256, target.name, size, linked=True)
        except (OSError, RequestRefusedError) as error:
            logger.debug("%s cannot be linked to the inbox, so it is copied: %s", sha256, error)
            return False
        finally:
            target.unlink(missing_ok=True)
        return True

    def _place(self, inbox: Path, descriptor: int, sha256: str, size: int) -> bool:
        target = inbox / f"{sha256}.{secrets.token_hex(8)}"
        try:
            content.copy(descriptor, target, size)
            self._store.blob_placed(sha256, target.name, size)
        except (OSError, RequestRefusedError) as error:
            logger.warning("%s cannot be placed in the inbox, so it is uploaded: %s", sha256, error)
            return False
        finally:
            target.unlink(missing_ok=True)
        return True
