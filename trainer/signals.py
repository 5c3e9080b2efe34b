"""Signals in the processes that load data."""

import signal


def shield_from_sigterm(worker: int) -> None:  # noqa: ARG001 (the data loader passes its number)
    """In a loader process: the rank decides when to stop, and still needs data until then."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
