"""Points of a job's trackers as JSON lines of the worker's own, which are forwarded as those of `torchyard.report` are.

Each line carries the source that it was read from and how far: a worker that starts again goes on from there. What is
in the file has been synced, so the service never has more than the disk.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from torchyard.injob import numbers
from torchyard.numbers import MAX_METRIC_NAME
from worker.trackers.points import TrackerPoint

#: A record holds as many values at most (`forward.metrics`).
MAX_VALUES: Final = 1000


class Journal:
    """One file of points, from several sources."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next = 0
        #: How far each source has been read, by its number.
        self.ends: dict[int, int] = {}
        #: Values whose names no database could hold.
        self.skipped = 0
        self._recover()

    def _recover(self) -> None:
        """Read how far it got, and cut off what was being written when the worker was killed."""
        position = whole = 0
        try:
            with self._path.open("rb") as file:
                for line in file:
                    content = _content(line)
                    if content is None:
                        break
                    position += len(line)
                    if "e" in content:
                        self.ends[content["s"]], self._next, whole = content["e"], content["n"] + 1, position
        except FileNotFoundError:
            return
        os.truncate(self._path, whole)

    def append(self, points: Iterable[tuple[int, TrackerPoint]]) -> None:
        """Add points with their sources' numbers. Raises OSError, and then nothing counts as read."""
        lines = [line for source, point in points for line in self._lines(source, point)]
        if not lines:
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        size = os.fstat(descriptor).st_size
        first = self._next
        try:
            data = b"".join(self._numbered(lines))
            while data:
                data = data[os.write(descriptor, data) :]
            os.fdatasync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            self._next = first
            raise
        finally:
            os.close(descriptor)
        self.ends |= {line["s"]: line["e"] for line in lines if "e" in line}

    def _lines(self, source: int, point: TrackerPoint) -> Iterator[dict[str, Any]]:
        """One, or several where the values are too many; the last one alone says that the point is whole."""
        values = {name: numbers.as_json(value) for name, value in point.values.items() if _is_name(name)}
        self.skipped += len(point.values) - len(values)
        names = list(values)
        for at in range(0, len(names), MAX_VALUES):
            some = {name: values[name] for name in names[at : at + MAX_VALUES]}
            line = {"step": point.step, "t": point.time_us, "v": some, "s": source}
            line |= {} if point.total is None else {"total": point.total}
            yield line | ({"e": point.end} if at + MAX_VALUES >= len(names) else {})

    def _numbered(self, lines: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        for line in lines:
            yield json.dumps({"n": self._next, **line}, separators=(",", ":")).encode() + b"\n"
            self._next += 1


def _content(line: bytes) -> dict[str, Any] | None:
    """A line of ours; None for one that is not whole."""
    try:
        return dict(json.loads(line)) if line.endswith(b"\n") else None
    except ValueError:
        return None


def _is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_METRIC_NAME and name.isprintable()
