"""Metrics of jobs and telemetry of nodes."""

from typing import Annotated

from pydantic import AfterValidator

from torchyard.ids import AttemptId
from torchyard.numbers import NonFinite
from torchyard.wire.protocol import Message, storable


class Mark(Message):
    """Answer to every ingest request: all before `offset` is stored, fsynced, and need not be kept."""

    offset: int


class MetricRecord(Message):
    """One line of a process's metrics file. Non-finite values travel as ``"nan"``, ``"inf"``, ``"-inf"``."""

    step: int
    time_us: int
    values: dict[str, float | NonFinite]
    total_steps: int | None = None


class MetricBatch(Message):
    """``POST /agent/attempts/{id}/metrics``; answered by `Mark`.

    `stream` names the process's file, `offset` and `end` are byte offsets in it; `records` are the lines between
    them. A batch that starts before the stored mark is cut there, one that starts after it is refused with 409 and
    the mark. Numbers of records only grow in a stream: those that do not count as skipped, too. `skipped` counts lines
    that could not be read. `taken` is the number of records that the process had
    taken by the end of the batch, by its own count: those without a line were lost. None: it does not count them.
    """

    node_rank: int
    stream: str
    rank: int
    offset: int
    end: int
    records: list[tuple[int, MetricRecord]]
    skipped: int = 0
    taken: int | None = None


class SampleBatch(Message):
    """``POST /agent/samples``: telemetry of the node and its jobs, sampled every 2 s; 204.

    `values` maps a series (``gpu.0.utilization``, ``cpu.percent``, ``memory.used``) to a number; `attempt` is None for
    the node's own series.
    """

    samples: list["Sample"]


class Sample(Message):
    time_us: int
    attempt: Annotated[AttemptId, AfterValidator(storable)] | None = None
    values: dict[str, float]
