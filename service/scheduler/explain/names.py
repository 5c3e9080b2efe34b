"""Names of jobs, users and accounts that reasons need."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchyard.api import Reason
from torchyard.ids import JobId

#: Jobs named in one sentence.
NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Title:
    """Number and owner of a job, by which messages name it."""

    number: int
    user: str


@dataclass(frozen=True, kw_only=True)
class Awaited:
    """A job that another one depends on."""

    job: JobId
    title: Title
    state: str


@dataclass(frozen=True, kw_only=True)
class Names:
    """Names that reasons may need for jobs, users, dependencies and accounts."""

    jobs: Mapping[JobId, Title] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict)
    #: The jobs that a job waits for, and what it needs of them: "success of all".
    awaited: Sequence[Awaited] = ()
    need: str = ""
    #: Why the job's sweep is paused.
    paused: str = ""
    #: Why no job starts: who has paused the queue, since when, and what they say.
    pause: Mapping[str, Any] = field(default_factory=dict)
    #: The secrets that the job names and that do not exist.
    missing: Reason | None = None
    #: By job and node, why the node runs no jobs of its owner.
    accounts: Mapping[tuple[str, str], Reason] = field(default_factory=dict)

    def params(self, jobs: Sequence[JobId]) -> dict[str, Any]:
        """Return the jobs that `of_jobs` names, and how many more there are, as parameters of a reason."""
        known = [self.jobs[job] for job in dict.fromkeys(jobs) if job in self.jobs][:NAMED]
        named = [{"number": title.number, "user": title.user} for title in known]
        return {"jobs": named, "more": max(len(set(jobs)) - NAMED, 0) if known else 0}

    def of_jobs(self, jobs: Iterable[JobId]) -> str:
        """Return the jobs' numbers and owners in words."""
        known = [self.jobs[job] for job in dict.fromkeys(jobs) if job in self.jobs]
        total = len(set(jobs)) if isinstance(jobs, Sequence) else len(known)
        words = [f"job {title.number} ({title.user})" for title in known[:NAMED]]
        more = f" and {total - NAMED} more" if total > NAMED else ""
        return (", ".join(words) + more) or "other jobs"
