"""Stops what runs before the stack itself stops."""

import time
from collections.abc import Callable

from torchyard.client.client import Client
from torchyard.states import JOB_HOLDS_GPUS

#: Seconds beyond the longest grace for results to arrive.
MARGIN_S = 30.0


def stop_all(client: Client, tended: Callable[[float], bool]) -> bool:
    """Cancel the running jobs and wait for their ends; queued ones stay queued.

    `tended` is called with seconds to wait and says whether to give up. Returns whether all ended.
    """
    nodes = [node.name for node in client.nodes() if node.state == "online"]
    for name in nodes:
        client.drain(name)
    jobs = _running(client)
    for job in jobs:
        client.cancel(job)
    graces = [int(client.job(job).spec.get("grace", 60)) for job in jobs]
    done = _wait(client, time.monotonic() + max(graces, default=0) + MARGIN_S, tended)
    for name in nodes:
        client.resume(name)
    return done


def running(client: Client) -> int:
    """Number of jobs that hold devices."""
    return len(_running(client))


def _wait(client: Client, deadline: float, tended: Callable[[float], bool]) -> bool:
    while left := _running(client):
        if time.monotonic() > deadline or tended(0.2):
            return not left
    return True


def _running(client: Client) -> list[str]:
    # In one question: a job that changes its state between two may be in neither answer.
    return [job.id for job in client.jobs(state=sorted(JOB_HOLDS_GPUS))]
