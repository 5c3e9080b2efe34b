"""A thread that does the same thing again and again, and outlives whatever goes wrong in it."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Self

#: After a round the thread rests for so many times as long as the round computed.
REST = 3

_log = logging.getLogger(__name__)


def call_all(parts: Iterable[Callable[[], object]]) -> None:
    """Call each of them, whatever becomes of the others; then raise an `ExceptionGroup` of what went wrong."""
    errors = []
    for part in parts:
        try:
            part()
        except Exception as error:  # noqa: BLE001  raised below, once all have had their turn
            errors.append(error)
    if errors:
        raise ExceptionGroup("parts of a round failed", errors)


class Repeated:
    """Call `work` at once, then every `every_s` seconds and whenever `woken` is set, until the block is left."""

    def __init__(
        self,
        name: str,
        work: Callable[[], object],
        *,
        every_s: float,
        failed: Callable[[], object],
        woken: threading.Event | None = None,
    ) -> None:
        self._name = name
        self._work = work
        self._every_s = every_s
        self._failed = failed
        self._woken = woken or threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            started = time.thread_time()
            self._woken.clear()  # before the work: what is set while it runs is seen in the next round
            try:
                self._work()
            except Exception:  # noqa: BLE001  a thread that ends would be missed by nobody
                self._failed()
                _log.exception("a round of the %s failed; the next one tries again", self._name)
            # Requests need the interpreter too: with a long queue every submission would start another long round. What
            # the round waits for, the disk above all, takes nothing from them.
            self._stopping.wait(min(REST * (time.thread_time() - started), self._every_s))
            if not self._stopping.is_set():
                self._woken.wait(self._every_s)
