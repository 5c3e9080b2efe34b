"""The process that a worker's shims are forked from: it has their modules loaded, and forks one for each request.

Run as ``python -I -S worker/shim/server.py <descriptor of its socket>`` by the worker's interpreter. It answers to
whoever holds the other end of its socket, and ends with it; the shims go on without it. A fork server with PyTorch
(`worker.forkserver`) serves its requests by the same functions.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import NoReturn

if __name__ == "__main__":
    sys.path.append(__file__.rpartition("/worker/")[0])

from worker.shim import reaper_child, supervise
from worker.shim.files import Json, say
from worker.shim.fork import Become, OwnChild, execute, prefer_to_kill

#: Most descriptors of one request: those of the answer, the input, the log, the locks of the attempt and of its GPUs.
DESCRIPTORS = 250
REQUEST = 8192
#: Words to and from a child that waits to be let go.
READY, GO = b"r", b"g"

#: Called in a forked child with what was asked for, and the descriptors that came with it. Never returns.
Begin = Callable[[Json, "list[int]"], None]


def serve(requests: socket.socket, begin: Begin) -> None:
    """Fork a child for each request, until the other end is closed."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, REQUEST, DESCRIPTORS)
        if not message:
            return
        try:
            child = os.fork()
        except OSError as error:
            say(f"no shim can be forked: {error}")
            child = -1
        if child == 0:
            requests.close()
            begin(json.loads(message), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def be_shim(asked: Json, descriptors: list[int], become: Become = execute) -> NoReturn:
    """Be the shim, once the worker has said so: until then it may still start the attempt in another way.

    With `by_reaper` the last descriptor leads to a reaper (`worker.shim.reaper_child`), which forks the job.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    answer, given, log, *held = descriptors
    for descriptor, number in ((given, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, number)
    os.close(given)
    os.close(log)
    supervise.settle([answer, *held])
    start_job = (
        partial(reaper_child.start_job, end=held[-1]) if asked["by_reaper"] else partial(OwnChild, become=become)
    )
    os.write(answer, READY)
    if os.read(answer, 1) != GO:
        os._exit(0)
    prefer_to_kill(0)
    supervise.stay_with(asked["launch"], answer, start_job)
    os._exit(0)


def main(arguments: list[str]) -> None:
    """``<descriptor of the socket>``."""
    requests = socket.socket(fileno=int(arguments[0]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a shim
    serve(requests, be_shim)


if __name__ == "__main__":
    main(sys.argv[1:])
