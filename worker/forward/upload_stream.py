"""One kind of work with a patience of its own, so that what fails in one does not hold up the others."""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from worker.control.backoff import Backoff
from worker.exceptions import RequestRefusedError, WorkerError

#: A service that says no is asked again, since it may be restored or mended; but rarely.
_REFUSED_FIRST_S: Final = 5.0
_REFUSED_LAST_S: Final = 60.0

logger = logging.getLogger(__name__)


class UploadStream:
    """Runs `pump` when it is due; `pump` says whether more is waiting, or raises."""

    def __init__(self, name: str, pump: Callable[[], bool]) -> None:
        self.name = name
        #: The last run succeeded and nothing more was waiting.
        self.drained = False
        #: Monotonic time before which it does not run, after a failure.
        self.due = 0.0
        #: Monotonic time since which each run has ended with a fault in TorchYard; None: the last one did not.
        self.faulty_since: float | None = None
        self._pump = pump
        self._away = Backoff()
        self._refused = Backoff(_REFUSED_FIRST_S, _REFUSED_LAST_S)
        self._said = ""

    @property
    def said(self) -> str:
        """Error of the last run; empty: there was none."""
        return self._said

    def run(self, now: float) -> None:
        """Do one piece of work, unless it has to wait."""
        if now < self.due:
            return
        try:
            self.drained = not self._pump()
        except RequestRefusedError as error:
            self._postpone(now + self._refused.next(), error)
        except (WorkerError, OSError) as error:
            self._postpone(now + self._away.next(), error)
        except Exception as error:
            # Not even a fault of ours in one stream may keep the result, and with it the GPUs.
            if str(error) != self._said:
                logger.exception("%s: a fault in TorchYard", self.name)
            since = now if self.faulty_since is None else self.faulty_since
            self._postpone(now + self._refused.next(), error)
            self.faulty_since = since
        else:
            self._away.reset()
            self._refused.reset()
            self._said = ""
            self.faulty_since = None

    def _postpone(self, due: float, error: Exception) -> None:
        self.due = due
        self.drained = False
        self.faulty_since = None
        if str(error) != self._said:
            self._said = str(error)
            logger.warning("%s: %s", self.name, error)


def drained(streams: Iterable[UploadStream]) -> bool:
    """Return whether nothing is left in any of them."""
    return all(stream.drained for stream in streams)


def run_all(streams: Iterable[UploadStream], now: float) -> None:
    for stream in streams:
        stream.run(now)


def pause(streams: Iterable[UploadStream], now: float) -> float:
    """Seconds until one of those that are not drained may run."""
    return min((max(0.0, stream.due - now) for stream in streams if not stream.drained), default=0.0)
