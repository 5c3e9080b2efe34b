"""Faults of the hardware as the driver reports them (Xid): a job that fails under one is not to blame.

CUDA tells a process whose GPU breaks nothing better than "unspecified launch failure", as it tells one that reads a
wrong address. The driver knows: Xids are listed at https://docs.nvidia.com/deploy/xid-errors.
"""

import logging
import threading
from collections import deque
from collections.abc import Collection
from functools import partial
from typing import Final

from torchyard.failures.fingerprints import GPU_XIDS
from torchyard.ids import now_us
from worker.devices import nvml as library

#: Milliseconds that one wait lasts.
WAIT_MS: Final = 1000
#: Seconds until the driver is asked again after it could not be.
PAUSE_S: Final = 60.0
KEEP: Final = 1000

logger = logging.getLogger(__name__)


class Xids:
    """XID errors of the GPUs since the worker began to listen; safe from many threads."""

    def __init__(self, nvml: library.Nvml | None) -> None:
        self._nvml = nvml
        self._seen: deque[tuple[int, str, int]] = deque(maxlen=KEEP)

    def of(self, uuids: Collection[str], since_us: int) -> int | None:
        """The newest fault of one of these GPUs since a moment."""
        return next((xid for at, uuid, xid in reversed(tuple(self._seen)) if uuid in uuids and at >= since_us), None)

    def newest(self) -> dict[str, tuple[int, int]]:
        """The newest fault of each GPU that had one: when, in microseconds, and which."""
        return {uuid: (at, xid) for at, uuid, xid in tuple(self._seen)}

    def listen(self, stopped: threading.Event) -> None:
        """Take note of faults until `stopped` is set; return at once where there is no driver."""
        nvml, said = self._nvml, ""
        while nvml is not None and not stopped.is_set():
            try:
                self._listen(nvml, stopped)
            except nvml.NVMLError as error:
                if said != str(error):
                    logger.warning("the driver tells of no Xids: %s", error)
                said = str(error)
            stopped.wait(PAUSE_S)

    def _listen(self, nvml: library.Nvml, stopped: threading.Event) -> None:
        events = nvml.nvmlEventSetCreate()
        try:
            whole = [card for card in library.cards(nvml) if card.instance is None]
            for card in whole:
                kind = nvml.nvmlEventTypeXidCriticalError
                library.ask(nvml, partial(nvml.nvmlDeviceRegisterEvents, card.handle, kind, events))
            while whole and not stopped.is_set():
                self._wait(nvml, events)
        finally:
            nvml.nvmlEventSetFree(events)

    def _wait(self, nvml: library.Nvml, events: library.Handle) -> None:
        try:
            event = nvml.nvmlEventSetWait_v2(events, WAIT_MS)
        except nvml.NVMLError as error:
            if getattr(error, "value", None) == nvml.NVML_ERROR_TIMEOUT:
                return
            raise
        xid = int(event.eventData)
        uuid = library.ask(nvml, lambda: nvml.nvmlDeviceGetUUID(event.device))
        logger.warning("GPU %s: Xid %d", uuid or "(unknown)", xid)
        if uuid is not None and xid in GPU_XIDS:
            self._seen.append((now_us(), uuid, xid))
