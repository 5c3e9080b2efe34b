"""The elastic agent in a forked process, and ranks that are forked from it.

It is torchrun's own agent; only the function that starts a rank's process is another. The agent has threads once its
store is open, and a process that has threads is not forked safely. So the ranks' processes are forked before that, and
wait for their environment.
"""

import importlib.util
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from worker.shim import elastic
from worker.shim.fork import Continuation

#: Where torchrun's class for a rank's process lies, in newer and in older versions.
_HANDLERS = (
    "torch.distributed.elastic.multiprocessing.subprocess_handler",
    "torch.distributed.elastic.multiprocessing.api",
)
_COUNT = "--nproc-per-node="

#: Makes this process a rank's wrapper, with these words and this environment.
Wrap = Callable[[list[str], dict[str, str]], NoReturn]


class WaitingRank:
    """A forked process that waits to be told which rank it is; it leaves when the agent does."""

    def __init__(self, wrap: Wrap) -> None:
        read, self._write = os.pipe()
        led, leads = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            # torchrun signals it by the group of its own that it leads.
            os.setsid()
            raise Continuation(lambda: _wait(read, wrap))
        os.close(read)
        os.close(leads)
        self._led = led

    def start(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        """Let it be this rank, once it leads a group of its own."""
        os.read(self._led, 1)
        os.close(self._led)
        with open(self._write, "w") as pipe:
            json.dump([list(words), dict(environment)], pipe)


def _wait(read: int, wrap: Wrap) -> None:
    # Also the other ranks' pipes, whose ends would otherwise stay open here.
    os.closerange(3, read)
    os.closerange(read + 1, max(map(int, os.listdir("/proc/self/fd"))) + 1)
    with open(read) as pipe:
        told = pipe.read()
    if not told:
        os._exit(0)
    wrap(*json.loads(told))


class ForkedRank(subprocess.Popen[bytes]):
    """A waiting rank as a process that torchrun has started, which it polls, waits for and signals."""

    def __init__(self, waiting: WaitingRank, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self._start: Callable[[], None] = partial(waiting.start, words, environment)
        self._waiting_pid = waiting.pid
        super().__init__(words)

    def _execute_child(self, *_: Any) -> None:
        """Take the place of the method that would fork and execute."""
        self._start()
        self.pid = self._waiting_pid
        self._child_created = True


def fork_ranks(arguments: Sequence[str], wrap: Wrap) -> list[WaitingRank]:
    """Fork the ranks of an agent with these arguments of `elastic`. Raises `Continuation` in each of them."""
    count = next(int(word[len(_COUNT) :]) for word in arguments if word.startswith(_COUNT))
    return [WaitingRank(wrap) for _ in range(count)]


def run_agent(arguments: list[str], waiting: list[WaitingRank]) -> None:
    """Be the agent of these arguments, in this process, with the ranks that were forked from it."""
    handler = _handler()

    def popen(self: Any, words: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        if waiting and self._stdout is None and self._stderr is None:
            return ForkedRank(waiting.pop(0), words, environment)
        made: subprocess.Popen[bytes] = plain(self, words, environment)
        return made

    if handler is not None:
        plain, handler._popen = handler._popen, popen
    elastic.main(arguments)


def _handler() -> Any:
    """Return torchrun's class for a rank's process; None in a version that has another."""
    found = (getattr(importlib.import_module(name), "SubprocessHandler", None) for name in _modules())
    return next((each for each in found if hasattr(each, "_popen")), None)


def _modules() -> list[str]:
    return [name for name in _HANDLERS if importlib.util.find_spec(name) is not None]
