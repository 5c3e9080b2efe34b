"""Python and native stacks of every rank, read from outside by py-spy.

Reading stops a process for some hundred milliseconds and needs nothing of it, so it works when everything in it hangs.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from torchyard.ids import now_us
from torchyard.wire import MAX_DUMP, Frame, ProcessStack, StackDump, ThreadStack
from worker import forkserver
from worker.attempts.folder import AttemptFolder
from worker.shim import table, verdict

PY_SPY: Final = Path(sys.executable).parent / "py-spy"
#: Seconds for one process: symbols of CUDA libraries take a while.
PATIENCE_S: Final = 30.0
AT_ONCE: Final = 4
MAX_PROCESSES: Final = 64
MAX_THREADS: Final = 32
MAX_FRAMES: Final = 100
FEW_FRAMES: Final = 30
MAX_WORDS: Final = 300

_MEND: Final = (
    "the system does not let the worker read other processes: run it as root, or `sysctl kernel.yama.ptrace_scope=0`; "
    "in a container, start it with --cap-add SYS_PTRACE"
)
_REFUSED: Final = ("permission denied", "operation not permitted", "eperm", "ptrace")


@dataclass(frozen=True, kw_only=True)
class StackTarget:
    """A process whose stacks are wanted."""

    process: table.Process
    rank: int
    main: bool


#: Where the modules of the fork server lie.
_SERVER: Final = str(Path(forkserver.__file__).parent)

#: The stacks of a process as py-spy's JSON, with native frames or without; raises `UnreadableError`.
Reader = Callable[[int, bool], list[Any]]


class UnreadableError(Exception):
    """The stacks of a process could not be read."""


def dump(folder: AttemptFolder, serial: int, read: "Reader | None" = None) -> StackDump:
    """The stacks of all ranks of an attempt on this node; empty when nothing of it runs."""
    found = list(targets(folder))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        stacks = list(pool.map(lambda target: stack_of(target, read or py_spy), found[:MAX_PROCESSES]))
    # A helper that is no Python program has no such stacks.
    kept = [stack for stack in stacks if stack.main or not stack.error]
    left_out = max(0, len(found) - MAX_PROCESSES)
    return fitted(StackDump(serial=serial, at_us=now_us(), processes=kept, left_out=left_out))


def fitted(dump: StackDump) -> StackDump:
    """The dump with at most `MAX_DUMP` bytes: helpers lose their threads first, then all do, then native frames go."""
    for few in (_whole, _main_threads_of_helpers, _main_threads, _python_frames):
        small = dump.model_copy(update={"processes": [few(stack) for stack in dump.processes]})
        if len(small.model_dump_json().encode()) <= MAX_DUMP:
            break
    return small


def _whole(stack: ProcessStack) -> ProcessStack:
    return stack


def _main_threads_of_helpers(stack: ProcessStack) -> ProcessStack:
    return stack if stack.main else _main_threads(stack)


def _main_threads(stack: ProcessStack) -> ProcessStack:
    return stack.model_copy(update={"threads": stack.threads[:1]})


def _python_frames(stack: ProcessStack) -> ProcessStack:
    threads = [
        thread.model_copy(update={"frames": [frame for frame in thread.frames if not frame.native][:FEW_FRAMES]})
        for thread in stack.threads[:1]
    ]
    return stack.model_copy(update={"threads": threads})


def targets(folder: AttemptFolder) -> Iterator[StackTarget]:
    """The ranks' own processes by rank, then all that they have started."""
    shim, launch = folder.read_shim(), folder.read_launch()
    if shim is None or launch is None:
        return
    everyone = table.everyone()
    below = shim.below(everyone)
    ranks = verdict.ranks_of(launch)
    mains = _programs(below, launch["rank_program"]) if launch["torchrun"] else [(shim.child_pid, ranks.start)]
    known = {process.pid: process for process in below}
    own = {pid: rank for pid, rank in mains if pid in known}
    for pid, rank in sorted(own.items(), key=lambda item: item[1]):
        yield StackTarget(process=known[pid], rank=rank, main=True)
    for pid, rank in own.items():
        for process in table.below(everyone, pid):
            yield StackTarget(process=process, rank=rank, main=False)


def _programs(below: Sequence[table.Process], wrapper: str) -> Iterator[tuple[int, int]]:
    """Processes that the ranks' wrappers have started, with their ranks."""
    wrappers = {process.pid for process in below if wrapper in process.command_line()[:5]}
    for process in below:
        if process.parent in wrappers and process.pid not in wrappers:
            rank = next((entry[5:] for entry in process.environment() if entry.startswith(b"RANK=")), b"")
            if rank.isdigit():
                yield process.pid, int(rank)


def stack_of(target: StackTarget, read: Reader) -> ProcessStack:
    """The stacks of one process, or why there are none."""
    command = program_of(target.process.command_line())[:MAX_WORDS]
    about = ProcessStack(pid=target.process.pid, rank=target.rank, main=target.main, command=command)
    try:
        found = _read(about.pid, read)
    except UnreadableError as error:
        return about.model_copy(update={"error": str(error)[: 2 * MAX_WORDS]})
    threads = [_thread(each) for each in sorted(found, key=lambda each: each.get("os_thread_id") != about.pid)]
    told = activity(threads[0].frames) if threads else {}
    return about.model_copy(update={"threads": threads[:MAX_THREADS], **told})


def program_of(command_line: Sequence[str]) -> str:
    """The program and its script, or the module after ``-m``: other arguments may hold tokens, and many read this."""
    program, *given = command_line or ("",)
    options = list(takewhile(_is_option, given)) if Path(program).name.startswith("python") else []
    script = [] if any(map(_is_code, options)) else [word for word in given[len(options) :][:1] if not _is_option(word)]
    return " ".join([program, *(["-m"] if "-m" in options else []), *script]).strip()


def _is_option(word: str) -> bool:
    return word.startswith("-")


def _is_code(option: str) -> bool:
    """Return whether it is Python's ``-c``, perhaps behind other letters, after which comes no script."""
    return option.endswith("c") and not option.startswith("--")


def _read(pid: int, read: Reader) -> list[Any]:
    try:
        return read(pid, True)
    except UnreadableError:
        return read(pid, False)


def py_spy(pid: int, native: bool) -> list[Any]:
    """Read a process with py-spy; raise `UnreadableError` with the mend."""
    command = [str(PY_SPY), "dump", "--json", *(["--native"] if native else []), "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True)
        return list(json.loads(done.stdout))
    except FileNotFoundError:
        raise UnreadableError("py-spy is not in the worker's environment: `pip install py-spy`") from None
    except subprocess.TimeoutExpired:
        raise UnreadableError(f"its stacks could not be read within {PATIENCE_S:g} s") from None
    except subprocess.CalledProcessError as error:
        raise UnreadableError(refusal(error.stderr.decode(errors="replace"))) from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"its stacks could not be read: {error}") from None


def refusal(words: str) -> str:
    """Return why py-spy failed, in a sentence with the mend if there is one."""
    if any(sign in words.lower() for sign in _REFUSED):
        return _MEND
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return f"py-spy says: {lines[0].removeprefix('Error: ') if lines else 'nothing'}"


def _thread(found: dict[str, Any]) -> ThreadStack:
    frames = [_frame(each) for each in _of_program(found["frames"])[:MAX_FRAMES]]
    return ThreadStack(name=found.get("thread_name"), frames=frames)


def _of_program(frames: list[Any]) -> list[Any]:
    """The frames without those by which a fork server has started the program."""
    return list(takewhile(lambda frame: not frame["filename"].startswith(_SERVER), frames))


def _frame(found: dict[str, Any]) -> Frame:
    return Frame(
        function=found["name"][:MAX_WORDS],
        file=found["filename"][-MAX_WORDS:],
        line=found["line"],
        native=found.get("module") is not None,
    )


def activity(frames: Iterable[Frame]) -> dict[str, str | None]:
    """Return a thread's activity by the library calls on top of its stack, and where the job's own code made them."""
    python = [frame for frame in frames if not frame.native]
    top = list(takewhile(_of_library, python))
    below = python[len(top) :]
    own = below[0] if below else next((frame for frame in python if not _of_torch(frame)), None)
    collective = _collective(top)
    loads = any(frame.file.endswith("torch/utils/data/dataloader.py") for frame in top)
    doing = "data loading" if loads else own.function if own else None
    return {
        "collective": collective,
        "doing": None if collective else doing,
        "place": f"{Path(own.file).name}:{own.line}" if own else None,
    }


def _collective(top: Sequence[Frame]) -> str | None:
    """The call of ``torch.distributed`` that is nearest to the top: its public function rather than a wrapper."""
    inside = [frame for frame in top if "/torch/distributed/" in frame.file]
    public = [frame for frame in inside if frame.file.endswith("/distributed_c10d.py")]
    return next((frame.function for frame in (*public, *inside)), None)


def _of_library(frame: Frame) -> bool:
    return "/lib/python3" in frame.file or frame.file.startswith("<frozen ")


def _of_torch(frame: Frame) -> bool:
    return "/torch/" in frame.file or frame.file.startswith("<frozen ")
