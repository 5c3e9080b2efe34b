"""Holds programs up: starts them, starts again what dies, ends them in order."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchyard.exceptions import StartError

PR_SET_PDEATHSIG = 1
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
#: A program that has run this long is started again without a growing pause.
STEADY_S = 30.0
#: Seconds that a program may take to end before it is killed.
STOP_S = 12.0
#: Before the stack is ready, a program that dies again and again is told of after so many deaths, and given up after so
#: many seconds of them.
TOLD_AFTER = 3
DYING_S = 20.0
TAIL_BYTES = 2000
TAIL_LINES = 12

_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True)
class SupervisedProgram:
    """A program to hold up; its output is appended to `log`."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    pass_fds: tuple[int, ...] = ()


class Child:
    """A program and the process that runs it now, if any."""

    def __init__(self, program: SupervisedProgram, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.program = program
        self.failures = 0
        #: Why the program cannot even be started.
        self.trouble: str | None = None
        self._failing_since = 0.0
        self._told = 0
        self._monotonic = monotonic
        self._process: subprocess.Popen[bytes] | None = None
        self._since = 0.0
        self._due = 0.0

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process, which ends by SIGTERM when this one dies, however it dies."""
        parent = os.getpid()

        def prepare() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)

        with self.program.log.open("ab") as log:
            self._process = subprocess.Popen(
                list(self.program.argv),
                env=dict(self.program.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=self.program.pass_fds,
                preexec_fn=prepare,  # noqa: PLW1509  this process has no other threads
            )
        self._since = self._monotonic()

    def tend(self) -> None:
        """Notice a death, and start the program again once its pause is over, until that succeeds."""
        now = self._monotonic()
        if self._process is not None and self._process.poll() is not None:
            self._failed(now, again=now - self._since <= STEADY_S)
            self._process = None
        if self._process is None and now >= self._due:
            try:
                self.start()
                self.trouble = None
            except (OSError, subprocess.SubprocessError) as error:
                self.trouble = str(error)
                self._failed(now, again=True)

    def _failed(self, now: float, *, again: bool) -> None:
        self.failures = self.failures + 1 if again else 1
        if self.failures == 1:
            self._failing_since, self._told = now, 0
        self._due = now + pause_after(self.failures)

    def news(self) -> str | None:
        """Message about a program that does not stay up, once for each sort of trouble."""
        if self.failures < TOLD_AFTER or self._told == (2 if self.trouble else 1):
            return None
        self._told = 2 if self.trouble else 1
        return f"waiting for {self.program.name}, which {self.words()}"

    def words(self) -> str:
        """Trouble of the program, as a predicate."""
        if self.trouble:
            return f"cannot be started: {self.trouble}"
        return f"ends at once; {self.program.log} says:\n{tail(self.program.log)}"

    def hopeless(self) -> bool:
        """Return whether it has died for long enough to give up a stack that is not ready yet."""
        return self.failures >= TOLD_AFTER and self._monotonic() - self._failing_since >= DYING_S

    def stop(self) -> None:
        """End the process: SIGTERM, then SIGKILL."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def pause_after(failures: int) -> float:
    """Seconds to wait after so many deaths in a row; the first costs next to nothing."""
    return min(FIRST_PAUSE_S * 2.0 ** (failures - 1), LONGEST_PAUSE_S)


class Supervisor:
    """Programs held up together, watched from one thread that has the signals blocked."""

    SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD})

    def __init__(self) -> None:
        self._children: list[Child] = []
        signal.pthread_sigmask(signal.SIG_BLOCK, self.SIGNALS)

    def add(self, program: SupervisedProgram) -> Child:
        """Start a program and keep it up from now on; one that cannot be started yet is tried again."""
        child = Child(program)
        child.tend()
        self._children.append(child)
        return child

    def tend(self, timeout_s: float) -> bool:
        """Wait for a signal or the timeout, tend the programs, and return whether this process was asked to end."""
        received = signal.sigtimedwait(self.SIGNALS, timeout_s)
        for child in self._children:
            child.tend()
            if news := child.news():
                print(f"torchyard: {news}", file=sys.stderr, flush=True)  # noqa: T201
        # A process that was stopped (Ctrl-Z) or traced beyond the timeout is told of no signal at all: what it gets
        # then was never filled in, and is no reason to end.
        return received is not None and received.si_signo in self.SIGNALS - {signal.SIGCHLD}

    def run(self) -> None:
        """Hold everything up until a signal asks for the end."""
        while not self.tend(1.0):
            pass

    def wait_until(self, ready: Callable[[], bool], *, timeout_s: float, what: str) -> bool:
        """Tend until `ready`; False when a signal asked for the end.

        Raises StartError with the log of the program that keeps dying for long, or when the time is over.
        """
        deadline = time.monotonic() + timeout_s
        while not ready():
            if self.tend(0.05):
                return False
            self._give_up_on_the_dying()
            if time.monotonic() > deadline:
                logs = ", ".join(str(child.program.log) for child in self._children)
                raise StartError(f"{what} did not come up within {timeout_s:.0f} s: read {logs}")
        return True

    def stop(self, *names: str) -> None:
        """End the named programs, or all, the last one started first."""
        for child in reversed(self._children):
            if not names or child.program.name in names:
                child.stop()
        self._children = [child for child in self._children if names and child.program.name not in names]

    def _give_up_on_the_dying(self) -> None:
        for child in self._children:
            if child.hopeless():
                raise StartError(f"{child.program.name} {child.words()}")


def tail(path: Path) -> str:
    """The last lines of a log; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        lines = []
    return "\n".join(f"  {line}" for line in lines[-TAIL_LINES:])
