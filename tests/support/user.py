"""A user with an environment and a folder of their own, who submits what they would run by hand."""

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import results, wait
from tests.support.stack import Stack
from torchyard.api import Checkpoint, Job
from torchyard.states import JobState
from torchyard.submission import drafts

#: Where a script of `examples/frameworks` takes a step, and how long it rests there at least and at most while it is
#: slowed. One that saves after some steps has to reach the next state before its grace has passed.
STEP, REST_S, LONGEST_S = re.compile(r"^( +)(?:loss|logits) = ", re.MULTILINE), 0.25, 1.0
#: Later each rest is such a part of the time since then, on a busy machine, where a stop may take long to reach it.
LATER = 1 / 20


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

    def slowed(self, script: Path) -> str:
        """Puts a script into the folder that rests in each step until `at_full_speed`; returns its name there.

        A few steps are then enough for a stop to come before their end, however fast the machine is, or slow.
        """
        self._slow.touch()
        clock = "__import__('time')"  # not a name, which would hide the script's own
        seconds = f"min({LONGEST_S}, max({REST_S}, {LATER} * ({clock}.time() - {time.time()})))"
        rest = f"if __import__('os').path.exists({str(self._slow)!r}): {clock}.sleep({seconds})"
        text, steps = STEP.subn(rf"\g<1>{rest}\n\g<0>", script.read_text())
        assert steps == 1
        (self.folder / script.name).write_text(text)
        return script.name

    def at_full_speed(self) -> None:
        """Has what was slowed go on without a rest."""
        self._slow.unlink(missing_ok=True)

    @property
    def _slow(self) -> Path:
        return self.folder / "slow"

    def submit(self, *command: str, live: bool = False, **fields: Any) -> Job:
        """Submits a command as `yard run` would, from the folder with the environment active."""
        where: dict[str, Any] = {"live": "."} if live else {}
        draft = drafts.from_words(list(command), self.folder, **where, **fields)
        active = {"VIRTUAL_ENV": str(self.environment), "PATH": str(self.environment / "bin")}
        return drafts.prepare(draft, active).submit(self.yard.client)

    def succeeds(self, job: Job, seconds: float = 180) -> Job:
        """The job once it has ended well and all it left is stored; its log is the message if it has not."""
        return self.ends(job, JobState.SUCCEEDED, seconds)

    def ends(self, job: Job, state: JobState, seconds: float = 180) -> Job:
        """The job once it has ended in this state and all it left is stored; its log is the message if it has not."""
        try:
            ended = results.settled(self.yard.client, job.id, seconds)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self.log(job)}") from error
        assert ended.state is state, f"{ended.state}: {ended.error}\n{self.log(ended)}"
        return ended

    def log(self, job: Job, attempt: int | None = None) -> str:
        """Rank 0's log of an attempt, without one of the newest."""
        return b"".join(self.yard.client.logs(job.id, rank=0, attempt=attempt)).decode(errors="replace")

    def checkpoint(self, job: Job, after: int = 0) -> Checkpoint:
        """The first stored checkpoint of a step past `after`, once there is one."""
        return wait.until(lambda: self._stored(job, after), seconds=180, what=f"a checkpoint of {job.name}")

    def _stored(self, job: Job, after: int) -> Checkpoint | None:
        found = (each for each in self.yard.client.checkpoints(job.id) if each.state == "stored" and each.step > after)
        return next(found, None)

    def series(self, job: Job) -> dict[str, Sequence[Any]]:
        """The job's curves by name."""
        return {series.name: series.points for series in self.yard.client.metrics(job.id).series}

    def written(self, job: Job, pattern: str) -> None:
        """Waits until a file that the job has written, whose whole name matches the pattern, can be pulled."""

        def kept() -> bool:
            return any(re.fullmatch(pattern, file.name) for file in self.yard.client.outputs(job.id))

        wait.until(kept, what=f"{pattern} among the outputs of {job.name}")
