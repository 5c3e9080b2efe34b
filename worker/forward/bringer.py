"""Kept files that the service asks for, and those that it has discarded."""

import logging
import os
import stat
import threading
from collections.abc import Callable
from functools import partial

from torchyard import wire
from torchyard.ids import AttemptId
from worker.attempts.content import sha256_of
from worker.attempts.kept import KeptFiles
from worker.background import Spawn
from worker.exceptions import WorkerError
from worker.forward.blobs import BlobSender
from worker.forward.outputs import OutputSink

logger = logging.getLogger(__name__)


class Bringer:
    """Obeys orders about kept files in the background, one attempt at a time and each order once."""

    def __init__(
        self,
        kept: KeptFiles | None,
        sink: OutputSink,
        blobs: BlobSender,
        spawn: Spawn,
    ) -> None:
        self._kept = kept
        self._sink = sink
        self._blobs = blobs
        self._spawn = spawn
        self._lock = threading.Lock()
        self._busy: set[AttemptId] = set()

    def obey(self, orders: wire.Orders) -> None:
        """Start what the orders say, unless it goes on already."""
        for attempt in orders.discard:
            self._start(attempt, partial(_discard, attempt=attempt))
        for order in orders.bring:
            self._start(order.attempt, partial(self._bring, order=order))

    def _start(self, attempt: AttemptId, action: Callable[[KeptFiles], None]) -> None:
        kept = self._kept
        if kept is None or attempt not in kept.attempts():
            return
        with self._lock:
            if attempt in self._busy:
                return
            self._busy.add(attempt)
        try:
            self._spawn(lambda: self._run(kept, attempt, action))
        except RuntimeError as error:  # of Python's, where the system has no thread left
            with self._lock:
                self._busy.discard(attempt)
            logger.warning("%s: its kept files are not brought now: %s", attempt, error)

    def _run(self, kept: KeptFiles, attempt: AttemptId, action: Callable[[KeptFiles], None]) -> None:
        try:
            action(kept)
        except (OSError, WorkerError) as error:
            logger.warning("%s: its kept files are not brought now: %s", attempt, error)
        except Exception:
            logger.exception("%s: a fault in TorchYard", attempt)
        finally:
            with self._lock:
                self._busy.discard(attempt)

    def _bring(self, kept: KeptFiles, order: wire.BringOrder) -> None:
        room = self._sink.outputs(order.attempt, wire.OutputReport(files=[])).room
        for place in order.files:
            with kept.open(order.attempt, place) as descriptor:
                status = os.fstat(descriptor)
                sha256, size = sha256_of(descriptor)
                alone = status.st_nlink == 1
                if not (alone and self._blobs.link(descriptor, sha256, size)):
                    if room is not None and size > room:
                        logger.warning("%s: %s waits for room in the store", order.attempt, place.path)
                        continue
                    self._blobs.send(descriptor, sha256, size)
            file = wire.FileRef(path=place.path, size=size, sha256=sha256, mode=stat.S_IMODE(status.st_mode))
            if not self._sink.outputs(order.attempt, _report(file, place.root)).missing:
                kept.remove(order.attempt, place)


def _discard(kept: KeptFiles, attempt: AttemptId) -> None:
    kept.discard(attempt)


def _report(file: wire.FileRef, root: wire.Root) -> wire.OutputReport:
    if root is wire.Root.OUTPUT:
        return wire.OutputReport(files=[file])
    return wire.OutputReport(files=[], written=[wire.WrittenFile(**file.model_dump(), root=root)])
