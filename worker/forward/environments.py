"""The packages installed for the interpreter of an attempt: read once in the background, and told by its hash."""

import hashlib
import json
import logging
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from torchyard import wire
from torchyard.ids import AttemptId
from worker.background import Spawn
from worker.exceptions import RequestRefusedError
from worker.monitoring import installed

#: Seconds after an attempt's first step until it is read: the start needs the cores first.
DELAY_S: Final = 2.0
#: Seconds that an attempt which has ended waits for a folder that does not answer.
PATIENCE_S: Final = 20.0
#: Interpreters whose packages are remembered.
KEPT: Final = 64
#: Bytes that are taken from a process which reads for another user.
_MAX_ANSWER: Final = 2**20
_PYTHON: Final = re.compile(r"python[\d.]*t?")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class JobInterpreter:
    """The interpreter of an attempt, and the account that it runs as; `uid` None: the worker's own."""

    path: Path
    home: Path | None = None
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()


def interpreter_of(launch: Mapping[str, Any]) -> JobInterpreter | None:
    """Return the interpreter of a ``launch.json``; None on all nodes but the first, whose environment counts.

    A command that names one itself (``launcher: none``) runs by that one.
    """
    path = launch.get("python")
    if launch.get("node_rank", 0) or not path:
        return None
    first, env = Path(launch["argv"][0]), launch["env"]
    own = launch["torchrun"] or (first.is_absolute() and _PYTHON.fullmatch(first.name))
    home = None if env.get("PYTHONNOUSERSITE") else env.get("HOME")
    return JobInterpreter(
        path=first if own else Path(path),
        home=Path(home) if home else None,
        uid=launch["uid"],
        gid=launch["gid"],
        groups=tuple(launch["groups"] or ()),
    )


class _KeptEnvironment(NamedTuple):
    """An environment with the modification times that it was read at."""

    watched: list[str]
    stamps: list[int]
    environment: wire.Environment


class EnvironmentReader:
    """Reads what is installed for interpreters; for what has not changed since, it has the answer. Thread-safe."""

    def __init__(self) -> None:
        self._kept: dict[JobInterpreter, _KeptEnvironment] = {}
        self._lock = threading.Lock()

    def read(self, interpreter: JobInterpreter) -> wire.Environment:
        """Return what the interpreter's account sees."""
        with self._lock:
            kept = self._kept.get(interpreter)
        if kept is not None and _stamps(kept.watched) == kept.stamps:
            return kept.environment
        try:
            found = installed.read(interpreter.path, interpreter.home) if interpreter.uid is None else _ask(interpreter)
            environment = wire.Environment(
                interpreter=str(interpreter.path),
                python=found.python,
                packages=found.packages,
                left_out=found.left_out,
                error=found.error,
            )
        except (OSError, ValueError, TypeError, RecursionError) as error:
            return wire.Environment(
                interpreter=str(interpreter.path), error=f"its packages cannot be read: {error}"[:500]
            )
        if environment.error is None:
            self._keep(interpreter, found.watched, environment)
        return environment

    def _keep(self, interpreter: JobInterpreter, watched: list[str], environment: wire.Environment) -> None:
        kept = _KeptEnvironment(watched, _stamps(watched), environment)
        with self._lock:
            self._kept.pop(interpreter, None)
            self._kept[interpreter] = kept
            if len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]


def _ask(interpreter: JobInterpreter) -> installed.Installed:
    """Have a process read that becomes the job's account: what that may not read, its job's page must not show.

    Raises OSError, and ValueError or TypeError for an answer that is none.
    """
    command = [sys.executable, "-I", "-S", installed.__file__, str(interpreter.path), str(interpreter.home or "")]
    command += map(str, (interpreter.uid, interpreter.gid, *interpreter.groups))
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={},
        start_new_session=True,
    ) as process:
        timer = threading.Timer(PATIENCE_S, process.kill)
        timer.start()
        try:
            answer = process.stdout.read(_MAX_ANSWER) if process.stdout else b""
        finally:
            timer.cancel()
            process.kill()
    return installed.Installed(**json.loads(answer))


def _stamps(paths: Sequence[str]) -> list[int]:
    return [_stamp(path) for path in paths]


def _stamp(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


class EnvironmentSink(Protocol):
    """Service that takes environments."""

    def environment(self, attempt: AttemptId, told: wire.EnvironmentReport) -> bool:
        """Return whether the content is missing."""


class EnvironmentForwarder:
    """The environment of one attempt; one that ends before it has been looked at has none."""

    def __init__(
        self,
        sink: EnvironmentSink,
        attempt: AttemptId,
        interpreter: JobInterpreter | None,
        reader: EnvironmentReader,
        *,
        spawn: Spawn,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink = sink
        self._attempt = attempt
        self._interpreter = interpreter
        self._reader = reader
        self._spawn = spawn
        self._now = now
        self._since: float | None = None
        self._reading: float | None = None
        self._found: wire.Environment | None = None
        self._done = interpreter is None

    @property
    def begun(self) -> bool:
        """Return whether it was looked at: of an attempt that has ended before that, nothing is told."""
        return self._since is not None

    def pump(self, *, ended: bool) -> bool:
        """Read or tell it, if it is time to; return whether an attempt that has ended must wait for it."""
        now = self._now()
        if self._since is None:
            self._done = self._done or ended
            self._since = now
        if self._done:
            return False
        if self._found is not None:
            self._tell(self._found)
        elif self._reading is None:
            self._begin(now, at_once=ended)
        elif ended and now - self._reading > PATIENCE_S:
            logger.warning("%s: its packages are not told: their folder does not answer", self._attempt)
            self._done = True
        return ended and not self._done

    def _begin(self, now: float, *, at_once: bool) -> None:
        if self._since is not None and (at_once or now - self._since >= DELAY_S):
            self._spawn(self._read)
            self._reading = now

    def _read(self) -> None:
        if self._interpreter is not None:
            self._found = self._reader.read(self._interpreter)

    def _tell(self, found: wire.Environment) -> None:
        content = found.model_dump_json()
        report = wire.EnvironmentReport(sha256=hashlib.sha256(content.encode()).hexdigest())
        try:
            if self._sink.environment(self._attempt, report):
                self._sink.environment(self._attempt, report.model_copy(update={"content": content}))
        except RequestRefusedError as error:
            logger.warning("%s: its packages are not told: %s", self._attempt, error)
        self._done = True
