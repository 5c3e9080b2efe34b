"""Telemetry: the newest ten minutes are kept while the service is away, the oldest are dropped first."""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from torchyard import wire
from worker.exceptions import RequestRefusedError, UnavailableError

EVERY_S: Final = 2.0
KEEP_S: Final = 600.0
BATCH: Final = 500

logger = logging.getLogger(__name__)


class SampleSink(Protocol):
    """Service that takes samples."""

    def samples(self, samples: list[wire.Sample]) -> None: ...


class SampleForwarder:
    """Takes samples and sends them, oldest first."""

    def __init__(self, sample: Callable[[], list[wire.Sample]], sink: SampleSink) -> None:
        self._sample = sample
        self._sink = sink
        self._waiting: deque[wire.Sample] = deque()

    def step(self) -> None:
        """Take one sample and send what is waiting, as far as the service takes it."""
        self._waiting.extend(self._sample())
        self._drop_old()
        try:
            while self._waiting:
                batch = [self._waiting[n] for n in range(min(BATCH, len(self._waiting)))]
                self._sink.samples(batch)
                self._drop(len(batch))
        except UnavailableError as error:
            logger.debug("%d samples wait: %s", len(self._waiting), error)
        except RequestRefusedError as error:
            logger.warning("samples are dropped: %s", error)
            self._drop(BATCH)

    def _drop_old(self) -> None:
        oldest = self._waiting[-1].time_us - KEEP_S * 1e6 if self._waiting else 0
        while self._waiting and self._waiting[0].time_us < oldest:
            self._waiting.popleft()

    def _drop(self, count: int) -> None:
        for _ in range(min(count, len(self._waiting))):
            self._waiting.popleft()
