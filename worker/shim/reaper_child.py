"""A job's first process that a reaper has forked, since its shim runs as another account than the fork server.

The reaper (`worker.forkserver.reaper`) is a fork of the account's server: parent of the job's first process, subreaper
of all that the job starts, and it tells the shim what has ended. It is the account's, and so may be anybody's program:
what it says is believed only as far as the kernel bears it out, or as it is about the job itself. Which process it is
comes from the credentials of its messages (`Reaper`), and the program has to be a child of that process. A process is
moved, signalled or named for no other reason.
"""

import json
import os
import select
import signal
import socket
import struct
import time

from worker.shim import cgroups, table
from worker.shim.files import Json, say
from worker.shim.fork import JobProcess, OwnChild, ProgramStartError, execute, oom_preference, open_output

#: Words between the shim and a reaper.
READY, GO = b"r", b"g"
#: Seconds that a reaper may take to answer, and its program to begin.
ANSWER_S, BEGIN_S = 5.0, 60.0
#: Seconds in which a reaper tells how the program has ended, once nothing else of the job lives.
TELL_S = 2.0
PAUSE_S = 0.02
#: Bytes of a reaper's message, and of the reason why a program cannot be executed.
MESSAGE, PROBLEM = 512, 4096
#: Messages that are read at once: whoever writes more must not keep the shim from its work.
AT_ONCE = 1000
#: ``struct ucred``: pid, uid and gid.
_CREDENTIALS = struct.Struct("3i")
#: How the program has ended where its reaper was killed before it could tell: it dies with it.
_KILLED = int(signal.SIGKILL)


class ReaperError(Exception):
    """The reaper is not what it should be; nothing of the job has run."""


class Reaper:
    """The process at the other end of a socket, as the kernel knows it."""

    def __init__(self, end: socket.socket, uid: int) -> None:
        """Raises ReaperError and OSError if it is no process of this account."""
        self._end, self._uid = end, uid
        pid = self._sender(READY)
        self._descriptor = os.pidfd_open(pid)
        nonce = os.urandom(16)
        end.send(nonce)
        # It has sent this with that pid after the descriptor was opened, and lives: so they are of one process.
        if self._sender(nonce) != pid:
            raise ReaperError("another process has answered")
        self.process = table.Process(pid)
        self.check()

    def _sender(self, expected: bytes) -> int:
        """Pid of the process that has sent these words. There is room for nothing but its credentials."""
        words, ancillary, _, _ = self._end.recvmsg(MESSAGE, socket.CMSG_SPACE(_CREDENTIALS.size))
        sent = [data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS)]
        if words != expected or not sent:
            raise ReaperError("it does not answer as it should")
        pid, uid, _ = _CREDENTIALS.unpack(sent[0])
        if uid != self._uid:
            raise ReaperError(f"it runs as the account {uid}")
        return int(pid)

    @property
    def ended(self) -> bool:
        return bool(select.select([self._descriptor], [], [], 0)[0])

    def check(self) -> None:
        """Raise ReaperError if it has ended: until then its pid was its own."""
        if self.ended:
            raise ReaperError("it has ended")

    def prefer_to_kill(self, preference: int) -> None:
        """Set the preference of the kernel's out-of-memory killer, also where the account may not."""
        folder = os.open(f"/proc/{self.process.pid}", os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.check()  # so the folder is its own, and never another's
            file = os.open("oom_score_adj", os.O_WRONLY, dir_fd=folder)
            try:
                os.write(file, str(preference).encode())
            finally:
                os.close(file)
        finally:
            os.close(folder)

    def kill(self) -> None:
        """Send SIGKILL to this very process."""
        try:
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        except ProcessLookupError:
            return

    def wait(self, seconds: float, *others: socket.socket) -> None:
        """Wait until it has ended, or one of the others has something to read."""
        select.select([self._descriptor, *(each.fileno() for each in others)], [], [], seconds)


class ReaperChild(JobProcess):
    """The child of a reaper."""

    def __init__(self, launch: Json, end: int) -> None:
        """Raises ReaperError and OSError; then nothing of the job has run, and nothing of this is left."""
        self._end = socket.socket(fileno=end)
        self._end.settimeout(ANSWER_S)
        self._groups: list[str] = launch["limits"]["groups"]
        self._told = False
        #: It has closed its end.
        self._silent = False
        self._tell_until = float("inf")
        try:
            self._reaper = Reaper(self._end, launch["uid"])
        except BaseException:
            self._end.close()
            raise
        try:
            self._enter(launch)
            self.process = self._fork(launch)
        except BaseException:
            self._end.close()
            self._reaper.kill()
            raise
        self.pid = self.process.pid
        self._end.setblocking(False)
        reaper = self._reaper.process
        self.origin = {"forked": True, "reaper_pid": reaper.pid, "reaper_start_ticks": reaper.start_ticks}

    @property
    def root(self) -> int:
        return self._reaper.process.pid

    def _enter(self, launch: Json) -> None:
        """Move the reaper to where the job belongs, before it has forked anything."""
        self._reaper.prefer_to_kill(oom_preference(launch))
        self._reaper.check()
        cgroups.enter(self._groups, self._reaper.process.pid)
        # Had it ended in between, its pid could be another's by now: the kernel would have had to give out all others.
        self._reaper.check()

    def _fork(self, launch: Json) -> table.Process:
        """Hand over what the program needs; return the process that the reaper has forked for it."""
        self._problem, problem = os.pipe()
        output = open_output(launch)
        content = os.memfd_create("launch")
        try:
            wanted = {name: launch[name] for name in ("argv", "env", "cwd")}
            with open(content, "wb", closefd=False) as file:
                file.write(json.dumps(wanted | {"paths": {"marks": launch["paths"]["marks"]}}).encode())
            socket.send_fds(self._end, [GO], [content, output, problem])
        finally:
            for descriptor in (content, output, problem):
                os.close(descriptor)
        told = _parsed(self._end.recv(MESSAGE))
        child = table.find(told.get("pid", 0))
        self._reaper.check()
        if child is None or child.parent != self._reaper.process.pid:
            raise ReaperError("the process that it names is no child of its own")
        if child.pid not in {each.pid for each in cgroups.members(self._groups)}:
            raise ReaperError("the process that it names is not in the job's groups")
        return child

    def go(self) -> None:
        try:
            self._end.send(GO)
        except OSError as error:
            raise ProgramStartError(f"its reaper has ended: {error}") from error
        deadline, problem = time.monotonic() + BEGIN_S, b""
        with open(self._problem, "rb", buffering=0) as pipe:
            while len(problem) < PROBLEM:
                if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    raise ProgramStartError(f"it has not begun within {BEGIN_S:g} s")
                read = pipe.read(PROBLEM)
                if not read:
                    break
                problem += read
        if problem:
            raise ProgramStartError(problem.decode(errors="replace"))

    def abandon(self) -> None:
        os.close(self._problem)
        self._reaper.kill()

    def wait(self, seconds: float) -> None:
        if self._reaper.ended:
            time.sleep(seconds)
        else:
            self._reaper.wait(seconds, *([] if self._silent else [self._end]))

    def collect(self) -> list[tuple[int, int]]:
        ended = self._reaper.ended
        found = []
        for _ in range(AT_ONCE):
            told = self._heard()
            if told is None:
                break
            found += _status(told)
        self._told = self._told or any(pid == self.pid for pid, _ in found)
        if ended and not self._told:
            found.append((self.pid, _KILLED))
            self._told = True
        self.over = ended and not self._others()
        return found

    def _heard(self) -> Json | None:
        try:
            words = self._end.recv(MESSAGE)
        except BlockingIOError:
            return None
        except OSError:
            words = b""
        self._silent = not words
        return _parsed(words) if words else None

    def _others(self) -> list[table.Process]:
        """The job's processes without the reaper: those below it, and all in the job's groups wherever they are."""
        reaper = self._reaper.process
        found = {each.key: each for each in cgroups.members(self._groups) if not each.dead}
        found |= {each.key: each for each in table.descendants(reaper.pid) if not self._reaper.ended}
        found.pop(reaper.key, None)
        return list(found.values())

    def living(self) -> list[table.Process]:
        """All processes of the job; the reaper once it is the last and has told how the program has ended."""
        others = self._others()
        if others or self._reaper.ended:
            return others
        self._tell_until = min(self._tell_until, time.monotonic() + TELL_S)
        return [self._reaper.process] if self._told or time.monotonic() > self._tell_until else []


def _parsed(words: bytes) -> Json:
    try:
        value = json.loads(words)
    except (ValueError, RecursionError):
        return {}
    numbers = value if isinstance(value, dict) else {}
    return {name: each for name, each in numbers.items() if type(each) is int and 0 <= each < 2**31}


def _status(told: Json) -> list[tuple[int, int]]:
    """The process and its wait status in a message, if they are some."""
    pid, status = told.get("pid"), told.get("status")
    if pid is None or status is None or not (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
        return []
    return [(pid, status)]


def start_job(launch: Json, end: int) -> JobProcess:
    """The job's first process, forked by the reaper at this end of a socket; where that fails a child of the shim's."""
    try:
        return ReaperChild(launch, end)
    except (ReaperError, OSError) as error:
        say(f"the fork server of its account is not used: {error}")
        _clear(launch["limits"]["groups"])
        return OwnChild(launch, execute)


def _clear(groups: list[str]) -> None:
    """End what a reaper has left where the job belongs: it would be taken for the job's."""
    deadline = time.monotonic() + TELL_S
    while cgroups.kill(groups) and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
