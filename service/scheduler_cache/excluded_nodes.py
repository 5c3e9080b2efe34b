"""Nodes that run no jobs of a user: part of what each of their jobs asks of a node."""

from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from sqlalchemy import Connection

from service.identity import unix_accounts
from service.scheduler.model.jobs import Running, Waiting
from service.scheduler.model.nodes import ResourceRequest
from service.scheduler.model.state import SchedulerState

Job = TypeVar("Job", Waiting, Running)


class ExcludedNodes:
    """The excluded nodes by user, as of the last look; not for several threads at once."""

    def __init__(self) -> None:
        self._excluded: dict[str, frozenset[str]] = {}

    def told(self, job: Job) -> Job:
        """Return the job with the nodes that run none of its owner's."""
        excluded = self._excluded.get(job.user, frozenset())
        return (
            job
            if job.resources.excluded_nodes == excluded
            else replace(job, resources=_without(job.resources, excluded))
        )

    def apply(self, tx: Connection, state: SchedulerState) -> None:
        """Look again, and tell all jobs of users for whom something has changed."""
        before, self._excluded = self._excluded, unix_accounts.excluded_nodes(tx)
        changed = {user for user, _ in before.items() ^ self._excluded.items()}
        if changed:
            state.put([self.told(job) for job in state.waiting.values() if job.user in changed])
            state.put([self.told(job) for job in state.running.values() if job.user in changed])


@lru_cache(maxsize=4096)
def _without(resources: ResourceRequest, excluded: frozenset[str]) -> ResourceRequest:
    """One object for all jobs that ask for the same."""
    return replace(resources, excluded_nodes=excluded)
