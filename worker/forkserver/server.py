"""The server itself: loads torch, looks whether it can be forked, and forks the shim of one attempt after another.

It answers to whoever holds the other end of its socket, and ends with it. What it forked goes on without it.
"""

import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NoReturn

from worker.forkserver import packages, preload, program, ranks, reaper
from worker.forkserver.title import RESERVED, ProcessTitle
from worker.shim import elastic, rank
from worker.shim import server as shims
from worker.shim.files import Json
from worker.shim.fork import Continuation, execute, prefer_to_kill

#: What a distributed training imports, at the latest with its first step. All but the first belong to torch.
MODULES = (
    "numpy",
    "torch",
    "torch.distributed",
    "torch.distributed.run",
    elastic.STATIC,
    "torch._dynamo",
    "torch.nn.parallel",
    "torch.optim",
    "torch.utils.data",
)
#: Starts threads when it is imported, which it stops at each fork.
_MAY_START_THREADS = "numpy"
#: Seconds after which a trial of a forked child counts as hung.
TRIAL_S = 20
#: A node without free memory loses its servers first.
EXPENDABLE = 1000


class UnfitError(Exception):
    """The modules of this interpreter cannot be shared by forked processes."""


class ForkServer:
    """One interpreter with its modules loaded. `options` are those that it was started with."""

    def __init__(self, options: Sequence[str], at_start: Iterable[str]) -> None:
        self.options = list(options)
        self._title = ProcessTitle()
        self._at_start = {name.partition(".")[0] for name in at_start} | set(sys.builtin_module_names)
        self._loaded = frozenset[str]()
        self._preload = preload.Preload()
        self._extended = False
        #: What is told of the installed packages.
        self._packages: Json = {}

    def load(self, learnt: Sequence[str]) -> Json:
        """Import the modules, and those that were learnt, and try a child; return what the answer tells.

        Raises UnfitError and ImportError.
        """
        site = [path for path in sys.path if os.path.isdir(path)]
        stamps = packages.stamps(site, [])
        for name in MODULES:
            _load(name)
        self._preload.load(learnt)
        if self._preload.count and preload.forked_threads() > 1:
            raise UnfitError("what was learnt has left threads")
        self._extended = program.forget_extension()
        gc.collect()
        gc.freeze()
        tops = {name.partition(".")[0] for name in sys.modules} | {"torchyard"}
        self._loaded = frozenset(tops - self._at_start)
        files = sorted(filter(None, (getattr(sys.modules.get(name), "__file__", None) for name in tops)))
        _try_child()
        self._packages = {"folders": site, "files": files, "stamps": [*stamps, *packages.stamps([], files)]}
        return self._packages | {"struck": self._preload.struck, "preloaded": self._preload.told()}

    def serve(self, requests: socket.socket) -> None:
        """Fork a child for each request, until the other end is closed. Raises `Continuation` in each child.

        It is a shim, or where the worker runs as another account the reaper of a job.
        """

        def begin(asked: Json, descriptors: list[int]) -> NoReturn:
            if "reaper" in asked:
                [end] = descriptors
                changed = partial(packages.changed, self._packages)
                raise Continuation(partial(reaper.run, end, changed, self._title, self._become))
            raise Continuation(partial(shims.be_shim, asked, descriptors, self._become))

        shims.serve(requests, begin)

    def _become(self, launch: Json) -> None:
        """Turn a child of the shim into the program of its launch."""
        words, environment = launch["argv"], launch["env"]
        agent = words[:2] == [sys.executable, elastic.__file__]
        command = None if agent else self._command(words, launch["paths"]["marks"])
        if not self._title.fits(environment) or not (agent or command):
            execute(launch)
        self._title.show(words, environment)
        raise Continuation(
            partial(self._run, command, environment) if command else partial(self._agent, words, environment)
        )

    def _agent(self, words: list[str], environment: dict[str, str]) -> NoReturn:
        self._renew(environment | {elastic.TIMES: str(elastic.steady_us())})
        sys.argv = words[1:]
        # A process with threads is not forked safely, and the agent has some as soon as its store is open.
        waiting = ranks.fork_ranks(words[2:], self._wrapper)
        program.as_main(lambda: ranks.run_agent(words[2:], waiting))

    def _wrapper(self, words: list[str], environment: dict[str, str]) -> NoReturn:
        """Be the wrapper of a rank, which torchrun would have executed with these words."""
        if words[3] != rank.__file__:
            os.execvpe(words[0], words, environment)
        self._title.show(words, environment)
        program.renew(environment)
        rank.main(words[4:], partial(self._become_rank, words[5]))
        os._exit(0)

    def _become_rank(self, marks: str, words: list[str], parent: int) -> None:
        command = self._command(words, marks)
        if command is None:
            rank.become(words, parent)
            return
        rank.settle()
        if os.getppid() != parent:
            os._exit(127)
        environment = dict(os.environ)
        self._title.show(words, environment)
        raise Continuation(partial(self._run, command, environment))

    def _run(self, command: program.Command, environment: dict[str, str]) -> None:
        self._renew(environment)
        program.run(command)

    def _renew(self, environment: dict[str, str]) -> None:
        program.renew(environment)
        if self._extended:
            program.extend_torch()

    def _command(self, words: list[str], marks: str) -> program.Command | None:
        """The command, if it can be run without executing it; else it is noted among the marks why not."""
        command = program.parse(words, sys.executable, self.options)
        why = program.NOT_PYTHON if command is None else self._why_executed(command)
        if why is None:
            return command
        told: dict[str, object] = {"cold": f"its program was executed: {why.words}", "cold-code": why.code}
        if why.said:
            told["cold-said"] = why.said
        rank.note_start(marks, int(os.environ.get("RANK", "0")), told)
        return None

    def _why_executed(self, command: program.Command) -> program.Cold | None:
        return program.needs_new_interpreter(command, self._loaded, self._preload.variables)


def _load(name: str) -> None:
    """Import a module. Raises UnfitError if it leaves anything that forked processes must not share."""
    before, opened = preload.threads(), preload.open_files()
    try:
        importlib.import_module(name)
    except ImportError:
        if name != _MAY_START_THREADS:
            raise
    if name != _MAY_START_THREADS and preload.threads() > before:
        raise UnfitError(f"{name} starts threads when it is imported")
    # Of a GPU's driver, for one: CUDA cannot be used in a process that is forked after it was initialised.
    kept = sorted(preload.open_files() - opened)
    if kept:
        raise UnfitError(f"{name} keeps {kept[0]} open when it is imported")
    if preload.starts_processes():
        raise UnfitError(f"{name} starts processes when it is imported")


def _try_child() -> None:
    """See whether a forked child can compute. Raises UnfitError."""
    torch: Any = sys.modules["torch"]
    if torch.cuda.is_initialized():
        raise UnfitError("a module has initialised CUDA")
    child = os.fork()
    if child == 0:
        signal.alarm(TRIAL_S)
        size = 200
        right = float((torch.ones(size, size) @ torch.ones(size, size)).sum()) == float(size**3)
        bad = getattr(torch.cuda, "_is_in_bad_fork", bool)()
        os._exit(0 if right and not bad else 1)
    _, status = os.waitpid(child, 0)
    if status:
        raise UnfitError(f"a forked child cannot compute with torch (status {status})")


def trampoline(function: Any) -> None:
    """Call the function; forked children go on, from here, with what each does next."""
    while True:
        try:
            function()
        except Continuation as continuation:
            function = continuation.run
        else:
            return


def main(arguments: Sequence[str], options: Sequence[str], at_start: Iterable[str]) -> None:
    """``<options of this interpreter> <descriptor of the socket> <padding>``: hears the names of modules that were
    learnt, answers once, then serves.
    """
    requests = socket.socket(fileno=int(arguments[0]))
    server = ForkServer(options, at_start)
    os.environ.pop(RESERVED)
    prefer_to_kill(EXPENDABLE)
    for name in [name for name in sys.modules if name.partition(".")[0] == "worker"]:
        del sys.modules[name]
    try:
        with requests.makefile("rb") as asked:  # nothing more comes before the answer
            learnt = json.loads(asked.readline() or b"[]")
        told = server.load(learnt)
    except (ImportError, UnfitError) as error:
        told = {"unfit": str(error)}
    requests.sendall(json.dumps(told).encode() + b"\n")
    if "unfit" in told:
        return
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    trampoline(lambda: server.serve(requests))
