"""A user with an environment and a folder of their own, who submits what they would run by hand."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import wait
from tests.support.stack import Stack
from torchyard import submission
from torchyard.api import Checkpoint, Job
from torchyard.states import JobState


@dataclass(frozen=True)
class User:
    """`environment` holds the real packages and nothing of ours; `folder` is where the scripts lie."""

    yard: Stack
    environment: Path
    folder: Path

    def copy(self, script: Path) -> str:
        """Puts a script into the folder as it is; returns its name there."""
        shutil.copy(script, self.folder)
        return script.name

    def submit(self, *command: str, live: bool = False, **fields: Any) -> Job:
        """Submits a command as `yard run` would, from the folder with the environment active."""
        where: dict[str, Any] = {"live": "."} if live else {}
        draft = submission.from_words(list(command), self.folder, **where, **fields)
        active = {"VIRTUAL_ENV": str(self.environment), "PATH": str(self.environment / "bin")}
        return submission.prepare(draft, active).submit(self.yard.client)

    def succeeds(self, job: Job, seconds: float = 180) -> Job:
        """The job once it has ended well; its log is the message if it has not."""
        return self.ends(job, JobState.SUCCEEDED, seconds)

    def ends(self, job: Job, state: JobState, seconds: float = 180) -> Job:
        """The job once it has ended in this state; its log is the message if it has not."""
        ended = wait.until(lambda: _ended(self.yard.client.job(job.id)), seconds=seconds, what=f"the end of {job.name}")
        assert ended.state is state, f"{ended.state}: {ended.error}\n{self.log(ended)}"
        return ended

    def log(self, job: Job) -> str:
        """The newest attempt's log of rank 0."""
        return self.yard.log(job).decode(errors="replace")

    def checkpoint(self, job: Job, after: int = 0) -> Checkpoint:
        """The first stored checkpoint of a step past `after`, once there is one."""
        return wait.until(lambda: self._stored(job, after), seconds=180, what=f"a checkpoint of {job.name}")

    def _stored(self, job: Job, after: int) -> Checkpoint | None:
        found = (each for each in self.yard.client.checkpoints(job.id) if each.state == "stored" and each.step > after)
        return next(found, None)

    def series(self, job: Job) -> dict[str, Sequence[Any]]:
        """The job's curves by name."""
        return {name: series.points for name, series in self.yard.client.metrics(job.id).series.items()}


def _ended(job: Job) -> Job | None:
    return job if job.state in {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED} else None
