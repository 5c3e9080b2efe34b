"""Traces: jobs with their submission times, owners and running times.

A CSV file with the columns `submit_time`, `duration` (seconds, from any beginning) and `num_gpus`, and optionally
`user`, `project`, `priority`, `estimate`, `gpu_share` (a size such as 10GiB), `restartable` (0 to 2, see
`RestartPermission`) and the flags `stoppable`, `reports` and `resumes` (0 or 1); others are left alone. Inside, times
are integer microseconds, sizes bytes.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from service.scheduler.model.nodes import ResourceRequest
from service.simulator import cells
from service.simulator.cells import MAX_GPUS, MAX_SECONDS, Cells, shown
from service.simulator.exceptions import TraceError
from torchyard.quantities import format_size, parse_size
from torchyard.spec import PRIORITY_RANK, Priority
from torchyard.spec.restarts import RestartPermission

SECOND = 1_000_000
NEEDED = ("submit_time", "duration", "num_gpus")
#: What a job allows and tells; 1 where the trace says nothing.
FLAGS = ("stoppable", "restartable", "reports", "resumes")
COLUMNS = (*NEEDED, "user", "project", "priority", "estimate", "gpu_share", *FLAGS)
#: User and project of jobs where the trace has no such column.
UNNAMED = "unnamed"
DEFAULT = "default"
#: Memory of a simulated GPU where nobody shares one.
_ANY_MEMORY = 1 << 40


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceJob:
    """One job of a trace. Times are microseconds; `line` is the file's, for messages."""

    line: int
    submit_us: int
    #: Running time without preemptions.
    duration_us: int
    gpus: int
    #: Memory that it takes of each GPU, which it then shares; 0: it has its GPUs to itself.
    gpu_share: int = 0
    user: str = UNNAMED
    project: str = DEFAULT
    #: Rank of the priority class.
    priority: int = PRIORITY_RANK[Priority.NORMAL]
    #: Running time that its owner expected.
    estimate_us: int | None = None
    #: It can be stopped at any time and go on later.
    stoppable: bool = True
    #: If it cannot, or does not resume: it may be started over after its trial.
    restartable: RestartPermission = RestartPermission.AUTO
    #: Its steps tell how long it will take, once it has run for a while.
    reports: bool = True
    #: Stopped, it goes on from a checkpoint; otherwise from the beginning.
    resumes: bool = True

    @property
    def keeps_work(self) -> bool:
        """True if it can be stopped and loses nothing by it."""
        return self.stoppable and self.resumes


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A cluster of equal nodes."""

    nodes: int
    #: GPUs of each node.
    gpus: int
    #: Memory of each GPU, in bytes; 0: not said, and no job may share one.
    gpu_memory: int = 0

    @property
    def total(self) -> int:
        """GPUs of all nodes."""
        return self.nodes * self.gpus

    def names(self) -> list[str]:
        """Return the names of the nodes, in the order of their numbers."""
        width = len(str(self.nodes - 1))
        return [f"node{number:0{width}}" for number in range(self.nodes)]

    @property
    def slot_memory(self) -> int:
        """Memory of each GPU as the policy sees it."""
        return self.gpu_memory or _ANY_MEMORY

    def spread(self, gpus: int, gpu_share: int = 0) -> tuple[int, ResourceRequest]:
        """Return the fewest nodes on which a job fits, and the resources that it holds on each, the same everywhere."""
        nodes = math.ceil(gpus / self.gpus)
        return nodes, ResourceRequest(gpus=math.ceil(gpus / nodes), gpu_share=gpu_share)

    def held(self, job: TraceJob) -> float:
        """Return how many GPUs a job holds: whole ones on all its nodes, or its part of those that it shares."""
        nodes, resources = self.spread(job.gpus)
        gpus = nodes * resources.gpus
        return gpus * job.gpu_share / self.slot_memory if job.gpu_share else gpus

    def check(self, jobs: Iterable[TraceJob]) -> None:
        """Raise TraceError for the first job that could never run."""
        for job in jobs:
            if self.spread(job.gpus)[0] > self.nodes:
                raise TraceError(
                    f"line {job.line}, num_gpus: {job.gpus} GPUs are more than there are, {self.nodes} x {self.gpus}: "
                    "give more with --gpus (of each node) and --nodes, or leave the job out of the trace"
                )
            if job.gpu_share and not self.gpu_memory:
                raise TraceError(
                    f"line {job.line}, gpu_share: say how much memory each GPU has, such as --gpu-memory 80GiB"
                )
            if job.gpu_share > self.slot_memory:
                raise TraceError(
                    f"line {job.line}, gpu_share: {format_size(job.gpu_share)} are more than a GPU has, "
                    f"{format_size(self.gpu_memory)}: give more with --gpu-memory, or leave the job out of the trace"
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
    jobs = [_job(line, row) for line, row in cells.rows(file, NEEDED, COLUMNS)]
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
        rows.writerow([*times, job.user, job.project, names[job.priority], estimate, job.gpu_share or "", *flags])


def _seconds(microseconds: int) -> str:
    return f"{microseconds / SECOND:.6f}".rstrip("0").rstrip(".")


def _job(line: int, row: Cells) -> TraceJob:
    return TraceJob(
        line=line,
        submit_us=cells.seconds(line, "submit_time", row["submit_time"], least=-MAX_SECONDS),
        duration_us=cells.seconds(line, "duration", row["duration"]),
        gpus=_gpus(line, row["num_gpus"]),
        gpu_share=_share(line, row["gpu_share"]),
        user=row["user"] or UNNAMED,
        project=row["project"] or DEFAULT,
        priority=_priority(line, row["priority"]),
        estimate_us=cells.seconds(line, "estimate", row["estimate"]) if row["estimate"] else None,
        stoppable=cells.flag(line, "stoppable", row["stoppable"], default=True),
        restartable=_restartable(line, row["restartable"]),
        reports=cells.flag(line, "reports", row["reports"], default=True),
        resumes=cells.flag(line, "resumes", row["resumes"], default=True),
    )


def _gpus(line: int, text: str) -> int:
    value = cells.number(text)
    if not 1 <= value <= MAX_GPUS or value != int(value):
        mend = "write a whole number from 1; jobs without GPUs wait for none and are left out"
        raise TraceError(f"line {line}, num_gpus: {shown(text)} is not a number of GPUs: {mend}")
    return int(value)


def _share(line: int, text: str) -> int:
    try:
        return parse_size(text) if text else 0
    except ValueError as error:
        raise TraceError(f"line {line}, gpu_share: {error}") from None


def _restartable(line: int, text: str) -> RestartPermission:
    known = {"": RestartPermission.AUTO, **{str(int(each)): each for each in RestartPermission}}
    if text not in known:
        mend = "write 0 for never, 1 for a job that may by itself, or 2 for one whose spec asks for it"
        raise TraceError(f"line {line}, restartable: {shown(text)} is none of 0, 1 and 2: {mend}")
    return known[text]


def _priority(line: int, text: str) -> int:
    names = {"": Priority.NORMAL, **{str(rank): name for name, rank in PRIORITY_RANK.items()}}
    try:
        return PRIORITY_RANK[names.get(text) or Priority(text.lower())]
    except ValueError:
        known = ", ".join(PRIORITY_RANK)
        raise TraceError(f"line {line}, priority: {shown(text)} is no class: write {known}, or nothing") from None


def span_us(jobs: Sequence[TraceJob]) -> int:
    """Return the time from the first submission to the last, in microseconds."""
    return jobs[-1].submit_us - jobs[0].submit_us
