"""Runs programs in forks of one process that has their packages loaded, which takes longer than most of them.

Started in the user's environment by `by_hand.py`: a line of standard input asks for a program, a line of standard
output tells its process, and another one the exit codes of its ranks.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import sys
import traceback
from typing import Any, NoReturn

#: Digits of a port, as each rank reads it.
DIGITS = 5


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        for name in request["load"]:
            importlib.import_module(name)
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            _launch(request)
        _tell(number=request["number"], pid=pid)


def _tell(**answer: Any) -> None:
    os.write(1, (json.dumps(answer) + "\n").encode())


def _launch(request: dict[str, Any]) -> NoReturn:
    """Start what is asked for as `python`, or as `torchrun` where ranks are, and wait for it."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reading, writing = os.pipe()
    pids = []
    for rank in range(request["ranks"] or 1):
        pid = os.fork()
        if pid == 0:
            _run(request, rank, reading)
        pids.append(pid)
    if request["ranks"]:
        from torch.distributed import TCPStore

        # Once the ranks are forked, since it has a thread; as the agent's under torchrun, it is theirs.
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        os.write(writing, f"{store.port:0{DIGITS}}".encode() * request["ranks"])
    codes = {}
    while len(codes) < len(pids):
        pid, status = os.wait()
        codes[pid] = os.waitstatus_to_exitcode(status)
        if codes[pid]:
            for other in set(pids) - codes.keys():
                os.kill(other, signal.SIGKILL)
    _tell(number=request["number"], codes=[codes[pid] for pid in pids])
    os._exit(0)


def _run(request: dict[str, Any], rank: int, reading: int) -> NoReturn:
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if request["ranks"]:
        os.environ.update(_of_torchrun(rank, request["ranks"], int(os.read(reading, DIGITS))))
    sys.argv = request["words"]
    sys.path[:0] = [request["folder"], *request["path"]]
    code = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else bool(left.code)
    except BaseException:  # noqa: BLE001 (the test reads it)
        traceback.print_exc()
        code = 1
    # Not by way of what the process has loaded: gloo's threads, which nobody waits for, abort it now and then.
    os._exit(code)


def _of_torchrun(rank: int, world: int, port: int) -> dict[str, str]:
    own = {"RANK": rank, "LOCAL_RANK": rank, "ROLE_RANK": rank, "GROUP_RANK": 0}
    shared = {"WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world, "ROLE_WORLD_SIZE": world, "GROUP_WORLD_SIZE": 1}
    store = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": True}
    elastic = {"TORCHELASTIC_RUN_ID": "hand", "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0}
    return {name: str(value) for name, value in {**own, **shared, **store, **elastic}.items()}


if __name__ == "__main__":
    main()
