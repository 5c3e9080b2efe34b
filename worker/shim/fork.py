"""A job's first process: forked by its shim (`OwnChild`), or by a reaper (`worker.shim.reaper_child.ReaperChild`).

Either waits for its shim's word, so that ``shim.json`` is there before any instruction of the job has run, and has the
job's account, groups, streams and folder by then (`child_main`). It becomes the program by executing it, or without
that, in a fork of a server that has PyTorch loaded (`worker.forkserver`).
"""

import ctypes
import errno
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from worker.shim import cgroups, network, table
from worker.shim.files import Json, now_us, steady_us, write_whole

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
#: Yama's: who may read this process although it is no ancestor.
PR_SET_PTRACER, ANY = 0x59616D61, ctypes.c_ulong(-1)
LIBC = ctypes.CDLL(None, use_errno=True)
#: What a misspelled program may be meant to be.
_COMMON = ("python", "python3", "torchrun", "accelerate", "deepspeed", "mpirun", "bash")
#: The shim stays until it has a result; `kill` on it is no way to stop a job.
IGNORED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


#: Preferences of the kernel's out-of-memory killer, of -1000 (never) to 1000.
GUARD, UNLIMITED = -900, 500


def become_subreaper() -> None:
    """Be the parent of every process below this one whose own parent ends."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def prefer_to_kill(preference: int) -> None:
    """Set the kernel's preference to end this process on a node without free memory, as far as it is allowed to."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(preference))
    except OSError:
        return


class ProgramStartError(Exception):
    """The program cannot be executed."""


class Continuation(BaseException):
    """Next work of a forked process, once it has left the functions that it was forked in (`trampoline`)."""

    def __init__(self, run: Callable[[], object]) -> None:
        super().__init__()
        self.run = run


#: Turns a forked process into the program of this launch: executes it, or raises `Continuation`.
Become = Callable[[Json], object]


def execute(launch: Json) -> NoReturn:
    """Execute the program of a launch in place of this process."""
    os.execvpe(launch["argv"][0], launch["argv"], launch["env"])


class JobProcess(ABC):
    """The job's first process, as its shim sees it: it waits for `go` before it becomes the program."""

    pid: int
    #: This very process, whoever has its pid once it has ended.
    process: table.Process
    #: What ``shim.json`` tells of how it was made.
    origin: Json
    #: Nothing of the job is left to wait for.
    over = False

    @property
    @abstractmethod
    def root(self) -> int:
        """The process that all of the job's are below."""

    def record(self, path: str, begun_us: int) -> tuple[int, int]:
        """Write ``shim.json``: without it no instruction of the job has run. `begun_us` is when the shim began, by the
        steady clock. Returns the time of the start, by the wall clock and by the steady one.
        """
        own, started_us, started_steady_us = table.Process(os.getpid()), now_us(), steady_us()
        content = {"pid": own.pid, "start_ticks": own.start_ticks, "boot_id": table.boot_id()}
        content |= {"child_pid": self.pid, "started_us": started_us, **self.origin}
        write_whole(path, content | {"begun_us": begun_us, "started_steady_us": started_steady_us})
        return started_us, started_steady_us

    @abstractmethod
    def go(self) -> None:
        """Let the program run; raise ProgramStartError when it cannot be executed."""

    @abstractmethod
    def abandon(self) -> None:
        """Have it leave without having run anything."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Wait until something of the job has ended, or for so long."""

    @abstractmethod
    def collect(self) -> list[tuple[int, int]]:
        """Return pid and wait status of what has ended since the last call."""

    @abstractmethod
    def living(self) -> list[table.Process]:
        """Return all processes of the job, as of now."""


class OwnChild(JobProcess):
    """A child of the shim's: the shim is the subreaper of the job."""

    def __init__(self, launch: Json, become: Become = execute) -> None:
        self.origin = {"forked": become is not execute}
        go, self._go = os.pipe()
        self._problem, problem = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._go)
            child_main(launch, go, problem, become, partial(_prepare, launch))
        os.close(go)
        os.close(problem)
        self.process = table.Process(self.pid)

    @property
    def root(self) -> int:
        return os.getpid()

    def go(self) -> None:
        os.write(self._go, b"g")
        os.close(self._go)
        with open(self._problem, "rb") as pipe:
            problem = pipe.read().decode(errors="replace")
        if problem:
            raise ProgramStartError(problem)

    def abandon(self) -> None:
        os.close(self._go)
        os.close(self._problem)

    def wait(self, seconds: float) -> None:
        signal.sigtimedwait([signal.SIGCHLD], seconds)

    def collect(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.over = True
                return found
            if pid == 0:
                return found
            found.append((pid, status))

    def living(self) -> list[table.Process]:
        return table.descendants(os.getpid())


def open_output(launch: Json) -> int:
    """Open the log of the job's first process."""
    return os.open(launch["output"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def oom_preference(launch: Json) -> int:
    """A full node loses a job that named no limit first; the shim, which has to tell of it, last."""
    return 0 if launch["limits"]["memory"] else UNLIMITED


def _prepare(launch: Json) -> None:
    """Give this child what the worker's own account alone can give it, then the job's account."""
    output = open_output(launch)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # By itself and before it is anything else's: whatever it forks is bound as well.
    cgroups.enter(launch["limits"]["groups"])
    if launch.get("isolated"):
        network.isolate()
    prefer_to_kill(oom_preference(launch))
    if launch["uid"] is not None:
        drop_privileges(launch["uid"], launch["gid"], launch["groups"])


def child_main(launch: Json, go: int, problem: int, become: Become, prepare: Callable[[], None]) -> NoReturn:
    """Turn this child into the program of its launch once `go` says so; why it cannot goes to `problem`."""
    try:
        os.setsid()
        for number in (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        prepare()
        # After the change of user, which clears it.
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # The worker reads the stacks of a program that hangs.
        LIBC.prctl(PR_SET_PTRACER, ANY, 0, 0, 0)
        os.chdir(launch["cwd"])
        if os.read(go, 1):
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            become(launch)
    except Continuation:
        raise
    except BaseException as error:  # noqa: BLE001 (nothing may climb out of the child)
        os.write(problem, _explain(error, launch["cwd"], launch["argv"][0]).encode())
    os._exit(127)


def _meant(program: str) -> str:
    import difflib  # only here: each shim would wait for it

    close = difflib.get_close_matches(program, _COMMON, n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close and close[0] != program else ""


def _explain(error: BaseException, cwd: str, program: str) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOEXEC:
        return "it is neither a program nor a script with a #! line"
    if number == errno.ENOENT:
        return f"there is no such program in {cwd} or on the job's PATH{_meant(program)}"
    return str(error)


def drop_privileges(uid: int, gid: int, groups: list[int]) -> None:
    """Be this account from now on."""
    os.setgroups(groups or [gid])
    os.setgid(gid)
    os.setuid(uid)
