"""The elastic agent of a node's ranks: torchrun, whose store only this machine reaches.

Run as ``python elastic.py <options of torchrun> program argument…`` by the job's own interpreter, Python 3.9 or later
with PyTorch 2. ``torchrun --standalone`` listens on all interfaces, asks nobody who they are, and unpickles what it
finds in its store. Here it has a static rendezvous, which reads no pickles, and the store gets a socket that is bound
to the loopback interface. The ranks meet at the same store.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

ADDRESS = "127.0.0.1"
#: Where torchrun's static rendezvous makes its store.
STATIC = "torch.distributed.elastic.rendezvous.static_tcp_rendezvous"
#: Variable by which the ranks' wrappers hear when the agent began and when it had its imports; they take it away. It is
#: set from the beginning, by which the in-job part knows the agent from a rank.
TIMES = "TORCHYARD_AGENT_TIMES"


def listening() -> socket.socket:
    """Return a socket that listens on a free port of the loopback interface."""
    made = socket.socket()
    made.bind((ADDRESS, 0))
    made.listen()
    return made


def with_socket(store: Callable[..., Any], listener: socket.socket) -> Callable[..., Any]:
    """Return `TCPStore` (`store`), but with a socket that listens already, which it then owns."""

    def make(*arguments: Any, **options: Any) -> Any:
        try:
            made = store(*arguments, **options, master_listen_fd=listener.fileno())
        except TypeError:  # PyTorch 2.0 binds its sockets itself
            listener.close()
            return store(*arguments, **options)
        listener.detach()
        return made

    return make


def rendezvous(port: int) -> list[str]:
    """Return torchrun's options for one node whose store has this port."""
    place = [f"--master-addr={ADDRESS}", f"--master-port={port}"]
    return ["--nnodes=1", "--node-rank=0", "--rdzv-backend=static", *place, f"--rdzv-id={uuid.uuid4()}"]


def leave_own_folder(path: list[str]) -> None:
    """Take the folder of this file from the module search path: its modules are none of the job's."""
    own = os.path.dirname(os.path.abspath(__file__))
    path[:] = [each for each in path if os.path.abspath(each) != own]


def steady_us() -> int:
    """Microseconds since the machine's boot, on a clock that nobody sets."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def imported(*names: str) -> list[Any]:
    """Import modules, and keep what they make out of garbage collections, which took a third of the process's time."""
    gc.disable()
    modules = [importlib.import_module(name) for name in names]
    gc.freeze()
    gc.enable()
    return modules


def main(arguments: list[str]) -> None:
    begun_us = os.environ.setdefault(TIMES, str(steady_us()))
    leave_own_folder(sys.path)
    static, run = imported(STATIC, "torch.distributed.run")
    listener = listening()
    static.TCPStore = with_socket(static.TCPStore, listener)
    os.environ[TIMES] = f"{begun_us} {steady_us()}"
    run.main([*rendezvous(listener.getsockname()[1]), *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
