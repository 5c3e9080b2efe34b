"""Follows a job in the terminal: its ranks' logs, a line of progress, its end."""

import select
import signal
import sys
import threading
from collections.abc import Callable, Container
from types import FrameType

from torchyard.api import Job, ReasonCode, Why
from torchyard.cli import common, outputs
from torchyard.cli import format as shown
from torchyard.cli.jobs import end_told, print_error
from torchyard.cli.loglines import LONGEST
from torchyard.cli.terminal import can_draw, clean, clean_log, drawn
from torchyard.client.client import Client
from torchyard.exceptions import TorchYardError
from torchyard.quantities import format_duration
from torchyard.spec import JobSpec
from torchyard.states import JOB_FINAL, JobState

#: Ranks whose logs are shown; of larger jobs only these first ones.
MAX_RANKS = 16
#: Seconds in which a second Ctrl-C cancels the job.
DECIDE_S = 5.0
#: Seconds for which the last of the logs may take to arrive after the job's end.
DRAIN_S = 30.0
#: Seconds between looks at the job; its end is told at once.
LOOK_S = 1.0


class Screen:
    """Log lines on stdout, with a status line below them where both are a terminal.

    With `beside`, they are on stderr: stdout belongs to what a program reads.
    """

    def __init__(self, *, beside: bool = False) -> None:
        self.beside = beside
        self._lock = threading.Lock()
        self._status = self._bar = self._drawn = ""
        #: Whether there is a status line.
        self.live = can_draw(sys.stderr) and sys.stdout.isatty()

    def write(self, lines: str) -> None:
        """Whole log lines, above the status line."""
        with self._lock:
            self._draw("")
            out = sys.stderr if self.beside else sys.stdout
            out.write(clean_log(lines) if out.isatty() else lines)
            out.flush()
            self._draw(self._bar or self._status)

    def status(self, text: str) -> None:
        """Replace the status line."""
        with self._lock:
            self._status = text
            self._draw(self._bar or text)

    def bar(self, text: str) -> None:
        """A progress bar that the job draws in place; shown instead of the status until it is a whole line."""
        with self._lock:
            self._bar = text
            self._draw(text or self._status)

    def _draw(self, text: str) -> None:
        text = clean(text)
        if not self.live or text == self._drawn:
            return
        width = common.console().width - 1
        sys.stderr.write(f"\r\033[K\033[2m{text[:width]}\033[0m" if text else "\r\033[K")
        sys.stderr.flush()
        self._drawn = text


class LineBuffer:
    """Cuts one rank's text into whole lines, so that ranks do not mix inside a line.

    What a program draws over with carriage returns, as progress bars do, is shown as a terminal would show it. A line
    that is too long to be kept is shown in parts; behind a prefix each of them is a line.
    """

    def __init__(self, write: Callable[[str], None], bar: Callable[[str], None], prefix: str) -> None:
        self._write = write
        self._bar = bar
        self._prefix = prefix
        self._rest = ""

    def feed(self, text: str) -> None:
        """Text as it comes."""
        whole, newline, self._rest = (self._rest + text).rpartition("\n")
        if newline:
            self._bar("")
            self._write("".join(f"{self._prefix}{drawn(line)}\n" for line in whole.split("\n")))
        if "\r" in self._rest:
            # What follows may belong to what was drawn last: a piece ends anywhere.
            self._rest = self._rest[max(0, self._rest.rstrip("\r").rfind("\r")) :]
            self._bar(self._prefix + drawn(self._rest))
        if len(self._rest) > LONGEST:
            self._bar("")
            self._write(self._prefix + drawn(self._rest) + "\n" * bool(self._prefix))
            self._rest = ""

    def end(self) -> None:
        """The last line, which may lack its newline."""
        if self._rest:
            self._bar("")
            self._write(f"{self._prefix}{drawn(self._rest)}\n")
            self._rest = ""


class RankLogs:
    """Threads that print the logs of one attempt's ranks."""

    def __init__(self, client: Client, job: Job, screen: Screen) -> None:
        self.attempt = job.attempt
        #: Ranks whose logs were shown to their end.
        self.shown: set[int] = set()
        #: Whoever read the output has gone.
        self.unread = False
        # A newer service may have fields that are not known here.
        size = min(JobSpec.model_validate(job.spec, extra="ignore").world_size, MAX_RANKS)
        self._threads = [
            threading.Thread(target=self._print, args=(client, job.id, rank, size, screen), daemon=True)
            for rank in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def _print(self, client: Client, job: str, rank: int, size: int, screen: Screen) -> None:
        lines = LineBuffer(screen.write, screen.bar, f"[{rank}] " if size > 1 else "")
        try:
            for chunk in client.follow_logs(job, rank=rank, attempt=self.attempt):
                lines.feed(chunk.text)
            self.shown.add(rank)
            lines.end()
        except BrokenPipeError:
            self.unread = True
        except TorchYardError as error:
            common.warn(f"the log of rank {rank} breaks off: {error}")
            lines.end()

    def join(self) -> None:
        """Wait for the last of the logs."""
        for thread in self._threads:
            thread.join(DRAIN_S)


class Interrupts:
    """Ctrl-C once asks, twice cancels the job, a third time leaves at once.

    Only what `run` is given is interrupted: one that comes while another is answered is counted, and answered then.
    """

    def __init__(self) -> None:
        self._count = 0
        self._interrupts = False
        self._before: object = None

    def __enter__(self) -> "Interrupts":
        self._before = signal.signal(signal.SIGINT, self._on)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]  # what signal.signal gave

    def _on(self, _signal: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._interrupts:
            self._interrupts = False
            raise KeyboardInterrupt

    def run(self, work: Callable[[], Job], answered: int) -> Job | None:
        """Return what the work gives; None if Ctrl-C was pressed more often than was answered, which ends the work."""
        try:
            self._interrupts = True
            return work() if self._count <= answered else None
        except KeyboardInterrupt:
            return None
        finally:
            self._interrupts = False


def follow(client: Client, job: Job, *, beside: bool = False) -> Job:
    """Follow a job to its end, or until the person leaves it running, and return it as it is then.

    With `beside`, nothing is written to stdout.
    """
    common.note(f"job {job.number} {job.name} submitted")
    follower = _Follower(client, job, Screen(beside=beside))
    with Interrupts() as interrupts:
        for answered, step in enumerate((follower.to_the_end, follower.left_running, follower.cancelled)):
            if (done := interrupts.run(step, answered)) is not None:
                return done
    raise KeyboardInterrupt


class _Follower:
    """One job on the screen; its logs are shown once, however often Ctrl-C is pressed."""

    def __init__(self, client: Client, job: Job, screen: Screen) -> None:
        self._client = client
        self._job = job
        self._screen = screen
        self._ranks: RankLogs | None = None
        self._told: str | None = None

    def to_the_end(self) -> Job:
        """Show the job until it has ended."""
        client, screen = self._client, self._screen
        while True:
            job = self._job
            if job.attempt and job.started_at and (self._ranks is None or self._ranks.attempt != job.attempt):
                self._join()
                self._ranks = RankLogs(client, job, screen)
            if job.state in JOB_FINAL:
                break
            if self._ranks is not None and self._ranks.unread:
                common.note(
                    f"nobody reads the log any more; job {job.number} goes on: `yard cancel {job.number}` stops it"
                )
                raise BrokenPipeError
            screen.status(self._status())
            try:
                self._job = client.wait(job.id, timeout_s=LOOK_S)
            except TimeoutError:
                self._job = client.job(job.id)
        self._join()
        screen.status("")
        ranks = self._ranks
        shown_ranks = set() if ranks is None or ranks.attempt != job.attempt else ranks.shown
        _tell_end(client, job, shown_ranks, beside=screen.beside)
        return job

    def left_running(self) -> Job:
        """Wait for the second Ctrl-C, or else leave the job running."""
        job = self._job
        self._screen.status("")
        common.note(
            f"\njob {job.number} goes on; Ctrl-C again within {DECIDE_S:.0f} s cancels it, Enter leaves now "
            f"(later: `yard logs -f {job.number}` follows it, `yard cancel {job.number}` stops it)"
        )
        select.select([sys.stdin] if sys.stdin.isatty() else [], [], [], DECIDE_S)
        return self._client.job(job.id)

    def cancelled(self) -> Job:
        """Have the job cancelled, and show it until it has ended."""
        number = self._job.number
        self._client.cancel(self._job.id)
        common.note(f"cancelling job {number}: it may save its work first (Ctrl-C leaves it to that)")
        return self.to_the_end()

    def _status(self) -> str:
        client, job = self._client, self._job
        if job.state != JobState.QUEUED:
            time = shown.elapsed(job, client.now())
            return "  ".join(filter(None, (job.state.value, time, shown.progress(job), shown.latest(job.latest))))
        why = client.why(job.id)
        self._tell_wait(why)
        return f"queued: {why.summary}"

    def _tell_wait(self, why: Why) -> None:
        """Write why the job waits where no status line says so: once for each reason, as its numbers move on."""
        code = why.reasons[0].code if why.reasons else ReasonCode.STARTING
        if code not in (ReasonCode.STARTING, self._told) and not self._screen.live:
            self._told = code
            common.note(f"queued: {why.summary}")

    def _join(self) -> None:
        if self._ranks is not None:
            self._ranks.join()


def _tell_end(client: Client, job: Job, shown_ranks: Container[int], *, beside: bool) -> None:
    took = ""
    if job.started_at and job.ended_at:
        took = f" after {format_duration(job.running_s(job.ended_at))}"
    if job.error is not None:
        if beside:
            common.note(f"failed: {job.error.message}")
        else:
            print_error(job, with_tail=False, with_traceback=job.error.rank not in shown_ranks)
        if not job.error.traceback:
            _print_launcher(client, job)
    common.note(f"job {job.number} {job.state.value}{took}{_unsaved(client, job)}")
    outputs.tell_end(client, job)


def _unsaved(client: Client, job: Job) -> str:
    """Reason why a stop saved nothing, if it did not."""
    message = end_told(client, job) if job.stop is not None else ""
    _, found, why = message.partition("; nothing was saved")
    return f"{found}{why}"


def _print_launcher(client: Client, job: Job) -> None:
    """Last lines of the launcher's own log, where no rank says why it failed."""
    nodes = job.spec["resources"].get("nodes", 1)
    for rank in range(-1, -1 - nodes, -1):
        try:
            text = b"".join(client.logs(job.id, rank=rank)).decode(errors="replace")
        except TorchYardError:
            return
        for line in text.splitlines()[-12:]:
            common.note(f"launcher: {line}")
