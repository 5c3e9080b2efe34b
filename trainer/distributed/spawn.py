"""Ranks without torchrun: processes of this command, for notebooks and machines that have no launcher.

Source: https://docs.pytorch.org/docs/stable/multiprocessing.html (spawning subprocesses).
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from multiprocessing.process import BaseProcess
from typing import Any

from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException, start_processes

from trainer.exceptions import SpawnError

#: How long the other ranks may take to end by themselves when one has failed, and all of them after SIGTERM.
GRACE_S = 8.0


def run(ranks: int, function: Callable[..., None], *arguments: Any) -> None:
    """Call ``function(*arguments)`` in as many processes as ranks; returns when all have ended well.

    The function lies at the top of a module. Each process has the environment that torchrun would make; the store by
    which they meet is this process's, on a port that was free. Raises SpawnError with the reason when a rank fails,
    after ending the others. Interrupted, it ends them all.
    """
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(minutes=10))
    context = start_processes(  # type: ignore[no-untyped-call]
        _rank, args=(ranks, store.port, function, arguments), nprocs=ranks, join=False
    )
    try:
        while not context.join(grace_period=GRACE_S):
            pass
    except ProcessRaisedException as raised:
        raise SpawnError(f"rank {raised.error_index} failed:\n{_traceback(raised)}", 1) from None
    except ProcessExitedException as ended:
        raise SpawnError(*_how(ended)) from None
    except BaseException:
        # A notebook interrupts its own process alone.
        _end(context.processes)
        raise


def environment(rank: int, ranks: int, port: int) -> dict[str, str]:
    """Environment variables that torchrun sets for a rank of a single node."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


def _rank(rank: int, ranks: int, port: int, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    # Else the rank's own children, such as loader processes, are spawned as well and load torch anew.
    multiprocessing.set_start_method(None, force=True)
    os.environ.update(environment(rank, ranks, port))
    function(*arguments)


def _end(ranks: Sequence[BaseProcess]) -> None:
    for rank in ranks:
        rank.terminate()
    deadline = time.monotonic() + GRACE_S
    for rank in ranks:
        rank.join(max(deadline - time.monotonic(), 0))
        rank.kill()
        rank.join()


def _how(ended: ProcessExitedException) -> tuple[str, int]:
    """A sentence, and an exit code as a shell would give it."""
    if ended.signal_name is not None:
        return f"rank {ended.error_index} was killed by {ended.signal_name}", 128 - ended.exit_code
    return f"rank {ended.error_index} exited with code {ended.exit_code}", ended.exit_code


def _traceback(raised: ProcessRaisedException) -> str:
    return str(raised).partition("following error:\n")[2].strip()
