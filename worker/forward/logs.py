"""Logs: raw bytes of each rank, from the mark on, in turns so that a flood in one does not hold up the others."""

import ctypes
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from torchyard.ids import AttemptId
from torchyard.injob import layout
from worker.attempts import opening
from worker.exceptions import OutOfStepError

BATCH: Final = 2**20
#: Only logs beyond this size are punched: small ones stay whole for people who look at the node itself.
PUNCH_ABOVE: Final = 64 * 2**20
PUNCH_STEP: Final = 16 * 2**20
#: The end of a log stays: the traceback is taken from it.
KEEP_TAIL: Final = 2**20
_KEEP_SIZE_PUNCH_HOLE: Final = 0x01 | 0x02
_BLOCK: Final = 4096
_RANK_LOG: Final = re.compile(r"rank-(\d{1,6})\.log")

logger = logging.getLogger(__name__)
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong]


class LogSink(Protocol):
    """Service that takes logs."""

    def log(self, attempt: AttemptId, rank: int, offset: int, data: bytes, dropped: int) -> int: ...


@dataclass(kw_only=True)
class _LogStream:
    rank: int
    mark: int = 0
    #: So far what is stored was given back to the file system, and beyond the limit what never will be.
    punched: int = 0
    cut: int = 0
    #: Bytes beyond the limit that the service was told of.
    told_dropped: int = 0
    #: Whether `mark` is the service's own word.
    known: bool = False


class LogForwarder:
    """The logs of one attempt. `limit`: bytes kept of each; what lies beyond is dropped and counted."""

    def __init__(
        self, sink: LogSink, attempt: AttemptId, folder: Path, *, limit: int, fresh: bool, node_rank: int = 0
    ) -> None:
        self._sink = sink
        self._attempt = attempt
        self._folder = folder
        self._limit = limit
        self._fresh = fresh
        self._node_rank = node_rank
        self._streams: dict[str, _LogStream] = {}
        self._strange: set[str] = set()

    @property
    def dropped(self) -> int:
        """Bytes beyond the limit, over all logs."""
        return sum(stream.told_dropped for stream in self._streams.values())

    def pump(self) -> bool:
        """Send at most one batch of every log; True while one has more."""
        more = False
        for name, stream in self._present():
            more |= self._pump(name, stream)
        return more

    def _present(self) -> Iterator[tuple[str, _LogStream]]:
        try:
            found = opening.names_of(self._folder / layout.LOGS)
        except FileNotFoundError:
            return
        for name in found:
            if name not in self._streams and (rank := rank_of(name, self._node_rank)) is not None:
                self._streams[name] = _LogStream(rank=rank, known=self._fresh)
            if name in self._streams and name not in self._strange:
                yield name, self._streams[name]

    def _pump(self, name: str, stream: _LogStream) -> bool:
        try:
            return self._forward(name, stream)
        except FileNotFoundError:
            return False
        except OSError as error:
            if not opening.strange(error):
                raise
            logger.warning("%s: log %s is left out: %s", self._attempt, name, error)
            self._strange.add(name)
            return False

    def _forward(self, name: str, stream: _LogStream) -> bool:
        path = self._folder / layout.LOGS / name
        with opening.plain(path) as descriptor:
            size = os.fstat(descriptor).st_size
            end = min(size, self._limit)
            dropped = size - end
            if stream.mark >= end and dropped == stream.told_dropped:
                return False
            # A worker that has just started asks for the mark before it reads what may have been sent already.
            length = min(BATCH, max(0, end - stream.mark)) if stream.known else 0
            data = os.pread(descriptor, length, stream.mark)
        if size > PUNCH_ABOVE:
            stream.cut = _punch(path, max(stream.cut, end), size - KEEP_TAIL)  # whether the service answers or not
        self._send(stream, data, dropped)
        if size > PUNCH_ABOVE:
            stream.punched = _punch(path, stream.punched, stream.mark - KEEP_TAIL)
        return stream.mark < end

    def _send(self, stream: _LogStream, data: bytes, dropped: int) -> None:
        try:
            stream.mark = self._sink.log(self._attempt, stream.rank, stream.mark, data, dropped)
            stream.told_dropped = dropped
        except OutOfStepError as error:
            logger.warning("%s: log of rank %d goes on at byte %d", self._attempt, stream.rank, error.offset)
            stream.mark = error.offset
        stream.known = True


def rank_of(name: str, node_rank: int = 0) -> int | None:
    """The rank whose log has this name; -1 is the launcher's, -2 that of the second node's. None: not a log."""
    if name == layout.LAUNCHER_LOG:
        return -1 - node_rank
    match = _RANK_LOG.fullmatch(name)
    return int(match.group(1)) if match else None


def _punch(path: Path, since: int, until: int) -> int:
    """Give blocks back to the file system, if it is worth it, and return how far; offsets stay as they are."""
    until -= until % _BLOCK
    if until - since < PUNCH_STEP:
        return since
    try:
        with opening.plain(path, write=True) as descriptor:
            _libc.fallocate(descriptor, _KEEP_SIZE_PUNCH_HOLE, since, until - since)
    except OSError as error:
        logger.debug("%s cannot be punched: %s", path, error)
    return until
