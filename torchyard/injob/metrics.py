"""`report`: metrics from the training loop to a file of this process, cheap enough for every step."""

from __future__ import annotations

import atexit
import collections
import itertools
import math
import os
import sys
import threading
import time

from torchyard.injob import layout, numbers, place

# Not imported here are modules of the standard library that a script may never need: json and contextlib take longer
# than all of this.
TYPE_CHECKING = False  # see torchyard/__init__.py
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Optional

    #: One call of `report`, as taken in the training loop: step, nanoseconds since 1970, values, steps in all. A plain
    #: tuple is made in a tenth of the time of a named one.
    MetricsReport = tuple[int, int, dict[str, Any], Optional[int]]

FLUSH_SECONDS = 0.2
#: Records that wait while a disk hangs; above it they are dropped and counted.
MAX_WAITING = 1_000_000


class DeviceScalar:
    """A copy of a GPU scalar, read later and elsewhere; `stream` is where it was made."""

    __slots__ = ("stream", "tensor")

    def __init__(self, tensor: Any, stream: Any) -> None:
        self.tensor = tensor
        self.stream = stream


class Recorder:
    """Takes records in the training thread and appends them to a file from a thread of its own.

    Each line carries its number `n` from 0. Numbers of records that a full disk dropped are left out, so a gap
    counts them. For those after the last line there is a second file, whose space is taken while there is some: it is
    overwritten in place with the number of records so far.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._step = -1
        self._warned: set[str] = set()
        self._reset()
        atexit.register(self.close)

    def _reset(self) -> None:
        self._waiting: collections.deque[MetricsReport] = collections.deque()
        self._lock = threading.Lock()
        #: For `_next` alone: the other one is held while a disk hangs, and the training must not wait for that.
        self._numbering = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._descriptor: int | None = None
        self._counter: int | None = None
        self._torn = False
        self._next = 0

    def after_fork(self) -> None:
        """Start anew in a forked child: the parent's records are the parent's, and the child has a file of its own."""
        for descriptor in (self._descriptor, self._counter):
            if descriptor is not None:
                os.close(descriptor)
        self._reset()

    def add(self, step: int | None, total_steps: int | None, values: dict[str, Any]) -> None:
        """Take one record; touches no disk."""
        now = time.time_ns()
        for name, value in values.items():
            if type(value) is not float:
                values[name] = self._take(name, value)
        self._step = self._step + 1 if step is None else int(step)
        if type(total_steps) is not int and total_steps is not None:
            total_steps = self._whole("total_steps", total_steps)
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append((self._step, now, values, total_steps))
        else:
            self._number(1)
        if self._thread is None:
            self._start()

    def _take(self, name: str, value: Any) -> Any:
        if numbers.on_accelerator(value) and value.numel() == 1:
            return DeviceScalar(value.detach().clone(), _stream(value))
        number = numbers.as_float(value)
        if number is None:
            self._warn("%s is not a number (%s): not recorded" % (name, type(value).__name__))
        return number

    def _whole(self, name: str, value: Any) -> int | None:
        number = numbers.as_float(value)
        if number is None or not math.isfinite(number):
            self._warn("%s is not a number (%s): not recorded" % (name, value))
            return None
        return int(number)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, args=(self._stop,), name="torchyard-metrics", daemon=True)
        _flush_at_worker_exit(self)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter is shutting down
            self._thread = None
            self.flush()

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(FLUSH_SECONDS):
            self.flush()

    def flush(self) -> None:
        """Append everything taken so far to the file; a failing disk drops it."""
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not batch:
                return
            first = self._number(len(batch))
            try:
                _resolve(batch)
                data = "".join(map(_line, itertools.count(first), batch)).encode()
            except Exception as error:  # noqa: BLE001 (the thread goes on: scripts report anything)
                self._count()
                self._warn("%d metrics are dropped: %s: %s" % (len(batch), type(error).__name__, error))
            else:
                self._write(data)

    def _number(self, records: int) -> int:
        """Take numbers for so many records; returns the first."""
        with self._numbering:
            first = self._next
            self._next = first + records
        return first

    def close(self) -> None:
        """End the thread and flush; a later `add` starts it anew."""
        self._stop.set()
        self.flush()
        self._thread = None
        self._stop = threading.Event()

    def _write(self, data: bytes) -> None:
        if self._torn:
            data = b"\n" + data
        size = len(data)
        try:
            if self._descriptor is None:
                self._descriptor = self._open()
            while data:
                data = data[os.write(self._descriptor, data) :]
            self._torn = False
        except OSError as error:
            self._torn = self._torn or len(data) < size
            self._count()
            self._warn("metrics are dropped while they cannot be written: %s" % error)

    def _open(self) -> int:
        name = "rank-%d-%d-%d" % (place.rank(), os.getpid(), time.time_ns() // 1000)
        path = os.path.join(self._folder, name)
        descriptor = os.open(path + ".jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._counter = os.open(path + layout.TAKEN, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            return descriptor
        self._count()
        return descriptor

    def _count(self) -> None:
        if self._counter is not None:
            try:
                os.pwrite(self._counter, b"%020d" % self._next, 0)
            except OSError:
                return

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            place.say(message)


def _stream(tensor: Any) -> Any:
    # Streams of torch do not wait for each other: the value must be read on the one that computes it.
    return sys.modules["torch"].cuda.current_stream(tensor.device) if tensor.is_cuda else None


def _pending(batch: Sequence[MetricsReport]) -> Iterator[tuple[dict[str, Any], str, DeviceScalar]]:
    for _, _, values, _ in batch:
        for name, value in values.items():
            if type(value) is DeviceScalar:
                yield values, name, value


def _resolve(batch: Sequence[MetricsReport]) -> None:
    """Read all GPU scalars of a batch with one transfer for each stream and type."""
    groups: dict[Any, list[tuple[dict[str, Any], str, DeviceScalar]]] = {}
    for found in _pending(batch):
        tensor = found[2].tensor
        groups.setdefault((tensor.device, tensor.dtype, found[2].stream), []).append(found)
    for (_, _, stream), members in groups.items():
        values = _read([pending.tensor.reshape(()) for _, _, pending in members], stream)
        for (record, name, _), value in zip(members, values):  # noqa: B905 (strict= came with 3.10)
            record[name] = value


def _read(tensors: list[Any], stream: Any) -> list[float | None]:
    torch = sys.modules["torch"]
    try:
        with torch.cuda.stream(stream):
            return [float(value) for value in torch.stack(tensors).tolist()]
    except RuntimeError as error:
        place.say("%d metrics could not be read from the GPU: %s" % (len(tensors), error))
        return [None] * len(tensors)


def _line(number: int, record: MetricsReport) -> str:
    step, time_ns, values, total = record
    pairs = [_text(name) + ":" + _number(value) for name, value in values.items() if value is not None]
    end = "" if total is None else ',"total":%d' % int(total)
    return '{"n":%d,"step":%d,"t":%d,"v":{%s}%s}\n' % (number, step, time_ns // 1000, ",".join(pairs), end)


def _text(name: str) -> str:
    """Return a name in JSON."""
    name = str(name)
    if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
        return '"%s"' % name
    return str(__import__("json").dumps(name))


def _number(value: float) -> str:
    """Return a number in JSON."""
    found = numbers.as_json(value)
    return '"%s"' % found if type(found) is str else float.__repr__(found)


def _flush_at_worker_exit(recorder: Recorder) -> None:
    """Children of multiprocessing leave by `os._exit`, which runs its finalizers but not atexit."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, recorder.flush, exitpriority=100)


_recorder: Recorder | None = None
_looked = False


def _find() -> Recorder | None:
    global _looked, _recorder  # noqa: PLW0603 (one file per process)
    attempt = place.current()
    if attempt is not None:
        _recorder = Recorder(attempt.path(layout.METRICS))
        os.register_at_fork(after_in_child=_recorder.after_fork)
    _looked = True
    return _recorder


def report(
    step: int | None = None,
    total_steps: int | None = None,
    metrics: Mapping[str, Any] | None = None,
    **values: Any,
) -> None:
    """Record metrics of this step: ``report(step=step, total_steps=n, loss=loss, metrics={"val/accuracy": acc})``.

    Values are floats, ints, or tensors with one element. They are taken now: a tensor on a GPU is copied there and
    read later, many at once, so that the training does not wait (while a CUDA graph is captured in the default,
    global mode, report no GPU tensors). `step` left out is one more than the last of this process, from 0: give it
    in a script that resumes. `total_steps` lets the dashboard show progress. Off the queue it does nothing; a full
    disk drops records and never raises.
    """
    recorder = _recorder if _looked else _find()
    if recorder is None:
        return
    if metrics:
        values.update(metrics)
    recorder.add(step, total_steps, values)
