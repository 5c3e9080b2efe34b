"""The wrapper of one rank under torchrun: its output goes to a file of its own, its end into a mark.

Run as ``python -I -S rank.py <logs> <marks> <cwd> [<option> <index>] -- program argument…``; standard library only.
torchrun tells neither which rank failed first nor with what, and closes pipes when it dies: here the rank writes for
itself. The option, such as ``--local-rank``, is put into the program's words at the index, with the rank's LOCAL_RANK.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
#: Yama's: who may read this process although it is no ancestor.
PR_SET_PTRACER, ANY = 0x59616D61, ctypes.c_ulong(-1)
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
LIBC = ctypes.CDLL(None, use_errno=True)
#: Bytes of a mark.
SPACE = 512
#: Variable of the elastic agent with its times, which is none of the program's.
AGENT_TIMES = "TORCHYARD_AGENT_TIMES"


class ExitMark:
    """``exit-<rank>.json``, whose space is taken before the job can fill the disk."""

    def __init__(self, folder: str, rank: int) -> None:
        self._rank = rank
        self._path = os.path.join(folder, f"exit-{rank}.json")
        self._temporary = f"{self._path}.{os.getpid()}"
        self._descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.posix_fallocate(self._descriptor, 0, SPACE)

    def begin(self, child: int) -> None:
        """Name the program, by which the shim knows whose it was should this wrapper be killed."""
        os.pwrite(self._descriptor, json.dumps({"rank": self._rank, "pid": child}).encode().ljust(SPACE), 0)

    def write(self, code: int) -> None:
        """`code` as `os.waitstatus_to_exitcode` gives it."""
        mark = {
            "rank": self._rank,
            "exit_code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "ended_us": time.time_ns() // 1000,
            "steady_us": steady_us(),
        }
        data = json.dumps(mark).encode()
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))
        os.rename(self._temporary, self._path)


def note_pid(folder: str, rank: int, pid: int) -> None:
    """``pid-<rank>``: a file that a process names by its number is known to be this rank's."""
    try:
        with open(os.path.join(folder, f"pid-{rank}"), "x") as mark:
            mark.write(str(pid))
    except OSError:
        pass  # curves of a tracker then count as the first rank's


def steady_us() -> int:
    """Microseconds since the machine's boot, on a clock that nobody sets."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def note_start(folder: str, rank: int, marks: "dict[str, object]") -> None:
    """``start-<rank>``: moments of the start, a line each. Those of rank 0 are told."""
    if rank != 0:
        return
    text = "".join(f"{name} {value}\n" for name, value in marks.items())
    try:
        with open(os.path.join(folder, f"start-{rank}"), "a") as file:
            file.write(text)
    except OSError:
        pass  # then these moments are not known


def agent_marks() -> "dict[str, object]":
    """Take the agent's times out of the environment."""
    times = os.environ.pop(AGENT_TIMES, "").split()
    return dict(zip(("agent", "agent-imported"), times, strict=False))


def redirect(folder: str, rank: int) -> None:
    path = os.path.join(folder, f"rank-{rank}.log")
    output = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)


def settle() -> None:
    """Make this child one that dies with the wrapper, with signals as a program expects them."""
    # torchrun signals the wrapper's group; the program gets each signal once, from the wrapper.
    os.setpgid(0, 0)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The worker reads the stacks of a rank that hangs; other users' processes can't all the same.
    LIBC.prctl(PR_SET_PTRACER, ANY, 0, 0, 0)
    for number in (*FORWARDED, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def become(program: list[str], parent: int) -> None:
    """Turn the child into the rank's program. Never returns."""
    try:
        settle()
        if os.getppid() == parent:
            os.execvp(program[0], program)
    except BaseException as error:  # noqa: BLE001 (nothing may climb out of the child)
        os.write(2, f"torchyard: cannot start {program[0]}: {error}\n".encode())
    os._exit(127)


#: Turns a forked child, whose parent has this number, into a program. Never returns.
Become = Callable[["list[str]", int], None]


def run(program: list[str], started: Callable[[int], None] = lambda _: None, become: Become = become) -> int:
    """Run the program to its end, handing signals on; its exit code, or the negative signal. `started` has its pid."""
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    wrapper = os.getpid()
    child = os.fork()
    if child == 0:
        become(program, wrapper)
    for number in FORWARDED:
        signal.signal(number, lambda received, _: hand_on(child, received))
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    started(child)
    # The child is not reaped before its signals are switched off: a handler must not meet a pid that is free again.
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    for number in FORWARDED:
        signal.signal(number, signal.SIG_IGN)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def hand_on(child: int, number: int) -> None:
    """Give the program a signal; if stopped it goes on to take it, and need not wait for torchrun's SIGKILL."""
    os.kill(child, number)
    if number != signal.SIGUSR1:
        os.kill(child, signal.SIGCONT)


def leave(code: int) -> None:
    """End this process as the program ended. Never returns."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def with_local_rank(program: list[str], option: str | None = None, index: str = "0") -> list[str]:
    """The program, told its number on the node as ``torch.distributed.launch`` would."""
    if option is None:
        return program
    at = int(index)
    return [*program[:at], f"{option}={os.environ['LOCAL_RANK']}", *program[at:]]


def main(arguments: list[str], become: Become = become) -> None:
    marks_of_start = agent_marks() | {"rank": steady_us()}
    own = arguments.index("--")
    logs, marks, folder, *told = arguments[:own]
    program = with_local_rank(arguments[own + 1 :], *told)
    rank = int(os.environ.get("RANK", "0"))
    redirect(logs, rank)
    os.chdir(folder)
    mark = ExitMark(marks, rank)

    def started(pid: int) -> None:
        mark.begin(pid)
        note_pid(marks, rank, pid)
        note_start(marks, rank, marks_of_start | {"program": begun_us})

    begun_us = steady_us()
    code = run(program, started, become)
    try:
        mark.write(code)
    except OSError as error:
        os.write(2, f"torchyard: cannot note the exit of rank {rank}: {error}\n".encode())
    leave(code)


if __name__ == "__main__":
    main(sys.argv[1:])
