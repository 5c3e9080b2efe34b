"""The reaper of a job whose shim runs as another account: a fork of the account's server, between it and the job.

It is the parent of the job's first process and the subreaper of all others, tells the shim what has ended
(`worker.shim.reaper_child`), and with the shim it leaves, and the job with it. It runs nothing of the job itself, and
begins nothing before the shim has moved it to where the job belongs.
"""

import json
import os
import select
import signal
import socket
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from worker.forkserver.title import ProcessTitle
from worker.shim.files import Json
from worker.shim.fork import Become, Continuation, become_subreaper, child_main
from worker.shim.reaper_child import GO, MESSAGE, READY

#: Descriptors that come with the word to fork: the launch's, the log's and that for a problem.
DESCRIPTORS = 3


def run(end: int, changed: Callable[[], bool], title: ProcessTitle, become: Become) -> NoReturn:
    """Be the reaper of the job whose shim is at the other end, unless an installed package has `changed`.

    Raises `Continuation` in the job's first process.
    """
    try:
        _run(end, changed, title, become)
    except Exception:  # noqa: BLE001 (nothing may climb out of the child; the shim sees that it has ended)
        os._exit(1)


def _run(end: int, changed: Callable[[], bool], title: ProcessTitle, become: Become) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.set_inheritable(end, False)
    shim = socket.socket(fileno=end)
    if changed():
        os._exit(0)
    os.setsid()
    become_subreaper()
    shim.send(READY)
    shim.send(shim.recv(MESSAGE))
    word, descriptors, _, _ = socket.recv_fds(shim, MESSAGE, DESCRIPTORS)
    if word != GO:
        os._exit(0)
    launch, output, problem = _received(descriptors)
    title.show([__file__], launch["env"])
    waiting, go = os.pipe()
    main = os.fork()
    if main == 0:
        shim.close()
        os.close(go)
        prepare = partial(_prepare, output)
        raise Continuation(partial(child_main, launch, waiting, problem, become, prepare))
    for descriptor in (waiting, output, problem):
        os.close(descriptor)
    _tell(shim, pid=main)
    if shim.recv(1) != GO:
        _leave(main)
    os.write(go, GO)
    os.close(go)
    _stay(shim, main)


def _received(descriptors: list[int]) -> tuple[Json, int, int]:
    content, output, problem = descriptors
    with open(content, "rb") as file:
        file.seek(0)
        launch: Json = json.loads(file.read())
    for descriptor in (output, problem):
        os.set_inheritable(descriptor, False)
    return launch, output, problem


def _prepare(output: int) -> None:
    """Give the job's first process its streams."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, number in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, number)
    os.close(nothing)
    os.close(output)


def _stay(shim: socket.socket, main: int) -> NoReturn:
    """Tell of all that ends, the job's first process last; leave when the shim does."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    os.kill(os.getpid(), signal.SIGCHLD)  # for what has ended before
    alive = True
    while True:
        readable, _, _ = select.select([shim.fileno(), woken], [], [])
        if woken in readable:
            os.read(woken, MESSAGE)
            ended = _collected()
            for pid in sorted(ended, key=lambda pid: pid == main):
                _tell(shim, pid=pid, status=ended[pid])
            alive = alive and main not in ended
        if shim.fileno() in readable:
            _leave(main if alive else None)


def _collected() -> dict[int, int]:
    """Wait status of the children that have ended, by their pids."""
    found: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        found[pid] = status


def _tell(shim: socket.socket, **numbers: int) -> None:
    try:
        shim.send(json.dumps(numbers).encode())
    except OSError:
        return  # the shim is gone, which shows next


def _leave(main: int | None) -> NoReturn:
    if main is not None:
        os.kill(main, signal.SIGKILL)
    os._exit(0)
