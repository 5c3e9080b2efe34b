"""Signals in the processes that load data."""

import multiprocessing
import os
import signal
import threading

#: Seconds between two looks at whether the rank is still there.
LOOK_S = 1.0


def shield_from_sigterm(worker: int) -> None:  # noqa: ARG001 (the data loader passes its number)
    """Shield a loader process from every SIGTERM but its rank's own.

    A signal to the whole group of a job would else end the loaders while their rank still needs data for its last
    steps. To ignore it is not enough: with SIGTERM a rank also ends loaders that it leaves behind, and waits for them.
    """
    rank = multiprocessing.parent_process()
    assert rank is not None
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    guard = threading.Thread(target=_guard, args=(rank.pid, os.getppid()), daemon=True, name="sigterm-guard")
    guard.start()


def _guard(rank: int, parent: int) -> None:
    """End this process when the rank says so or is gone."""
    # Who sent a signal is told to those who wait for it, not to handlers.
    while os.getppid() == parent:
        received = signal.sigtimedwait({signal.SIGTERM}, LOOK_S)
        if received is not None and received.si_pid == rank:
            break
    os._exit(0)
