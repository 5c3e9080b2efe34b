"""Traces: jobs with their submission times, owners and running times.

A CSV file with the columns `submit_time`, `duration` (seconds, from any beginning) and `num_gpus`, and optionally
`user`, `project`, `priority`, `estimate` and the flags `stoppable`, `restartable` and `reports` (0 or 1); others are
left alone. Inside, times are integer microseconds.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from service.scheduler.model.nodes import ResourceRequest
from service.simulator.exceptions import TraceError
from torchyard.spec import PRIORITY_RANK, Priority

SECOND = 1_000_000
NEEDED = ("submit_time", "duration", "num_gpus")
#: What a job allows and tells; 1 where the trace says nothing.
FLAGS = ("stoppable", "restartable", "reports")
COLUMNS = (*NEEDED, "user", "project", "priority", "estimate", *FLAGS)
#: User and project of jobs where the trace has no such column.
UNNAMED = "unnamed"
DEFAULT = "default"
#: More than any box has, and longer than any training takes.
MAX_GPUS = 100_000
MAX_SECONDS = 10**10


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceJob:
    """One job of a trace. Times are microseconds; `line` is the file's, for messages."""

    line: int
    submit_us: int
    #: Running time without preemptions.
    duration_us: int
    gpus: int
    user: str = UNNAMED
    project: str = DEFAULT
    #: Rank of the priority class.
    priority: int = PRIORITY_RANK[Priority.NORMAL]
    #: Running time that its owner expected.
    estimate_us: int | None = None
    #: It can be stopped at any time and go on later, from a checkpoint.
    stoppable: bool = True
    #: If it cannot: it may be started over after its trial.
    restartable: bool = True
    #: Its steps tell how long it will take, once it has run for a while.
    reports: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A cluster of equal nodes."""

    nodes: int
    #: GPUs of each node.
    gpus: int

    @property
    def total(self) -> int:
        """GPUs of all nodes."""
        return self.nodes * self.gpus

    def spread(self, gpus: int) -> tuple[int, ResourceRequest]:
        """Return the fewest nodes on which a job fits, and the resources that it holds on each, the same everywhere."""
        nodes = math.ceil(gpus / self.gpus)
        return nodes, ResourceRequest(gpus=math.ceil(gpus / nodes))

    def check(self, jobs: Iterable[TraceJob]) -> None:
        """Raise TraceError for the first job that could never run."""
        for job in jobs:
            if self.spread(job.gpus)[0] > self.nodes:
                raise TraceError(
                    f"line {job.line}, num_gpus: {job.gpus} GPUs are more than there are, {self.nodes} x {self.gpus}: "
                    "give more with --gpus (of each node) and --nodes, or leave the job out of the trace"
                )


def read(path: Path) -> list[TraceJob]:
    """Read the jobs of a file, sorted by submission; raises TraceError with line, column and how to correct it."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return parse(file)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path}: cannot be read as CSV: {error}") from error


def parse(file: Iterable[str]) -> list[TraceJob]:
    """Parse the lines of a CSV file into jobs, sorted by submission; raises TraceError."""
    rows = csv.DictReader(file, skipinitialspace=True)
    names = [name.strip() for name in rows.fieldnames or []]
    if missing := [name for name in NEEDED if name not in names]:
        raise TraceError(
            f"line 1: no column {', '.join(missing)}; the first line names the columns: {','.join(COLUMNS)}"
        )
    rows.fieldnames = names
    jobs = [_job(rows.line_num, row) for row in rows]
    if not jobs:
        raise TraceError("there are no jobs in the trace: write one line for each below the names of the columns")
    return sorted(jobs, key=lambda job: job.submit_us)


def write(jobs: Iterable[TraceJob], file: TextIO) -> None:
    """Write the jobs as CSV with all columns."""
    names = {rank: priority.value for priority, rank in PRIORITY_RANK.items()}
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(COLUMNS)
    for job in jobs:
        times = [_seconds(job.submit_us), _seconds(job.duration_us), job.gpus]
        estimate = "" if job.estimate_us is None else _seconds(job.estimate_us)
        flags = [int(getattr(job, name)) for name in FLAGS]
        rows.writerow([*times, job.user, job.project, names[job.priority], estimate, *flags])


def _seconds(microseconds: int) -> str:
    return f"{microseconds / SECOND:.6f}".rstrip("0").rstrip(".")


def _job(line: int, row: Mapping[str, str | None]) -> TraceJob:
    cells = {name: (row.get(name) or "").strip() for name in COLUMNS}
    estimate = _time(line, "estimate", cells["estimate"]) if cells["estimate"] else None
    return TraceJob(
        line=line,
        submit_us=_time(line, "submit_time", cells["submit_time"], least=-MAX_SECONDS),
        duration_us=_time(line, "duration", cells["duration"]),
        gpus=_gpus(line, cells["num_gpus"]),
        user=cells["user"] or UNNAMED,
        project=cells["project"] or DEFAULT,
        priority=_priority(line, cells["priority"]),
        estimate_us=estimate,
        **{name: _flag(line, name, cells[name]) for name in FLAGS},
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _time(line: int, column: str, text: str, least: float = 0) -> int:
    value = _number(text)
    if not least <= value <= MAX_SECONDS:
        what = "seconds" if least < 0 else "seconds, 0 or more"
        raise TraceError(f"line {line}, {column}: {_shown(text)} is not a number of {what}")
    return round(value * SECOND)


def _gpus(line: int, text: str) -> int:
    value = _number(text)
    if not 1 <= value <= MAX_GPUS or value != int(value):
        mend = "write a whole number from 1; jobs without GPUs wait for none and are left out"
        raise TraceError(f"line {line}, num_gpus: {_shown(text)} is not a number of GPUs: {mend}")
    return int(value)


def _flag(line: int, column: str, text: str) -> bool:
    if text not in {"", "0", "1"}:
        raise TraceError(f"line {line}, {column}: {_shown(text)} is neither 0 nor 1")
    return text != "0"


def _priority(line: int, text: str) -> int:
    names = {"": Priority.NORMAL, **{str(rank): name for name, rank in PRIORITY_RANK.items()}}
    try:
        return PRIORITY_RANK[names.get(text) or Priority(text.lower())]
    except ValueError:
        known = ", ".join(PRIORITY_RANK)
        raise TraceError(f"line {line}, priority: {_shown(text)} is no class: write {known}, or nothing") from None


def _shown(text: str) -> str:
    return repr(text) if text else "nothing"


def span_us(jobs: Sequence[TraceJob]) -> int:
    """Return the time from the first submission to the last, in microseconds."""
    return jobs[-1].submit_us - jobs[0].submit_us
