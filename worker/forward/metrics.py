"""Metrics: whole lines of every process's file, checked here so that no bad line can hold up the good ones."""

import json
import logging
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from torchyard import wire
from torchyard.ids import AttemptId
from torchyard.injob import layout
from torchyard.numbers import INT64, JSON_CONSTANTS, MAX_METRIC_NAME, NON_FINITE
from worker.attempts import opening
from worker.exceptions import OutOfStepError, RequestRefusedError

MAX_RECORDS: Final = 2000
#: Bytes read at once; a line longer than this is no metric.
READ: Final = 2**19
#: A job that makes more files than this has lost its mind; the first ones are read.
MAX_STREAMS: Final = 4096
MAX_VALUES: Final = 1000
_STREAM: Final = re.compile(r"rank-(\d{1,6})-[A-Za-z0-9._-]{1,80}\.jsonl")
#: Statuses that say that this batch is bad, and not that the service does not want this attempt.
_BAD_BATCH: Final = frozenset({400, 413, 422})

logger = logging.getLogger(__name__)


class MetricSink(Protocol):
    """Service that takes metrics."""

    def metrics(self, attempt: AttemptId, batch: wire.MetricBatch) -> int: ...


@dataclass(frozen=True, kw_only=True)
class MetricLines:
    """Records that were parsed from a piece of a metrics file."""

    records: list[tuple[int, wire.MetricRecord]]
    skipped: int
    #: Bytes that they take.
    length: int


@dataclass(kw_only=True)
class _MetricStream:
    rank: int
    mark: int = 0
    known: bool = False
    #: Lines a batch may have; halved when the service refuses one, until the bad line stands alone.
    batch: int = MAX_RECORDS
    #: The process's own count of its records was sent, once it had ended.
    counted: bool = False


class MetricForwarder:
    """The metric files of one attempt, in its folder `inside`; `owner` is the user id that they belong to.

    The first group of `pattern`, which their names match, is the rank.
    """

    def __init__(
        self,
        sink: MetricSink,
        attempt: AttemptId,
        folder: Path,
        *,
        node_rank: int,
        owner: int,
        fresh: bool,
        inside: str = layout.METRICS,
        pattern: re.Pattern[str] = _STREAM,
    ) -> None:
        self._sink = sink
        self._attempt = attempt
        self._folder = folder
        self._node_rank = node_rank
        self._owner = owner
        self._fresh = fresh
        self._inside = inside
        self._pattern = pattern
        self._streams: dict[str, _MetricStream] = {}
        self._strange: set[str] = set()
        #: Lines that could not be read.
        self.skipped = 0

    def pump(self, *, ended: bool) -> bool:
        """Send at most one batch of every file; True while one has more.

        `ended`: nobody writes any more, so a torn last line will never be whole.
        """
        try:
            with opening.folder(self._folder, self._inside) as at:
                return sum(self._pump(at, name, ended) for name in self._names(at)) > 0
        except FileNotFoundError:
            return False

    def _names(self, at: int) -> list[str]:
        found = [match for name in opening.names(at) if (match := self._pattern.fullmatch(name))][:MAX_STREAMS]
        for match in found:
            if match.string not in self._streams:
                self._streams[match.string] = _MetricStream(rank=int(match.group(1)), known=self._fresh)
        return [match.string for match in found if match.string not in self._strange]

    def _pump(self, at: int, name: str, ended: bool) -> bool:
        stream = self._streams[name]
        try:
            with opening.file(at, name, self._owner) as descriptor:
                size = os.fstat(descriptor).st_size
                if size <= stream.mark:
                    return ended and not stream.counted and self._count(at, name, stream)
                data = os.pread(descriptor, READ, stream.mark) if stream.known else b""
        except FileNotFoundError:
            return False
        except OSError as error:
            if not opening.strange(error):
                raise
            logger.warning("%s: metrics file %s is left out: %s", self._attempt, name, error)
            self._strange.add(name)
            return False
        before = stream.mark
        self._send(name, stream, split(data, stream.batch, ended=ended and before + len(data) >= size))
        if stream.mark >= size:
            return ended
        return stream.mark != before or not data or stream.batch < MAX_RECORDS

    def _count(self, at: int, name: str, stream: _MetricStream) -> bool:
        """Tell how many records a process that has ended took: no line follows those that it had to drop at last.

        True if the service knows less of the stream than it said, and wants that first.
        """
        before = stream.mark
        taken = _taken(at, name, self._owner)
        if taken:
            self._send(name, stream, MetricLines(records=[], skipped=0, length=0), taken)
        stream.counted = stream.mark >= before
        return not stream.counted

    def _send(self, name: str, stream: _MetricStream, lines: MetricLines, taken: int | None = None) -> None:
        if not lines.length and stream.known and taken is None:
            return
        batch = wire.MetricBatch(
            node_rank=self._node_rank,
            stream=name,
            rank=stream.rank,
            offset=stream.mark,
            end=stream.mark + lines.length,
            records=lines.records,
            skipped=lines.skipped,
            taken=lines.records[-1][0] + 1 if lines.records else taken,
        )
        try:
            stream.mark = self._sink.metrics(self._attempt, batch)
            stream.batch = MAX_RECORDS
            self.skipped += lines.skipped
        except OutOfStepError as error:
            stream.mark = error.offset
        except RequestRefusedError as error:
            if error.status not in _BAD_BATCH:
                raise
            self._narrow(name, stream, lines, error)
        stream.known = True

    def _narrow(self, name: str, stream: _MetricStream, lines: MetricLines, error: RequestRefusedError) -> None:
        """Find the line that the service does not take, and step over it."""
        if len(lines.records) > 1:
            stream.batch = len(lines.records) // 2
            return
        logger.warning("%s: a line of %s is skipped: %s", self._attempt, name, error)
        self._send(
            name, stream, MetricLines(records=[], skipped=lines.skipped + len(lines.records), length=lines.length)
        )


def _taken(at: int, name: str, owner: int) -> int | None:
    """The process's own count of its records."""
    try:
        with opening.file(at, name.removesuffix(".jsonl") + layout.TAKEN, owner) as descriptor:
            return int(os.pread(descriptor, 20, 0))
    except (FileNotFoundError, ValueError):
        return None
    except OSError as error:
        if not opening.strange(error):
            raise
        return None


def split(data: bytes, limit: int = MAX_RECORDS, *, ended: bool = False) -> MetricLines:
    """Read the whole lines at the start of `data`, at most `limit` of them; bad ones are counted.

    The rest waits for its end, unless nothing follows (`ended`) or it is longer than any metric.
    """
    records: list[tuple[int, wire.MetricRecord]] = []
    skipped = position = taken = 0
    while taken < limit and (newline := data.find(b"\n", position)) >= 0:
        record = parse(data[position:newline])
        if record is None:
            skipped += 1
        else:
            records.append(record)
        position = newline + 1
        taken += 1
    if taken < limit and position < len(data) and (ended or (position == 0 and len(data) >= READ)):
        position = len(data)
        skipped += 1
    return MetricLines(records=records, skipped=skipped, length=position)


def parse(line: bytes) -> tuple[int, wire.MetricRecord] | None:
    """Number and content of one line, or None when it is not a metric that every database can hold."""
    try:
        content = json.loads(line, parse_constant=JSON_CONSTANTS.__getitem__)
        number, step, time_us = _whole(content["n"]), _whole(content["step"]), _whole(content["t"])
        total = content.get("total")
        values = {_name(name): _value(value) for name, value in content["v"].items()}
        if not 0 < len(values) <= MAX_VALUES or number < 0:
            return None
        record = wire.MetricRecord(
            step=step, time_us=time_us, values=values, total_steps=None if total is None else _whole(total)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
    return number, record


def _whole(value: Any) -> int:
    if type(value) is not int or value not in INT64:
        raise ValueError
    return value


def _name(name: str) -> str:
    if not 0 < len(name) <= MAX_METRIC_NAME or not name.isprintable():
        raise ValueError
    return name


def _value(value: Any) -> Any:
    if type(value) in {int, float}:
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if value in NON_FINITE:
        return value
    raise ValueError
