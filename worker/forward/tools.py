"""Everything that the followers of a node share: the service, the blobs, the watches of shims, what the node knows."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from torchyard import wire
from torchyard.ids import AttemptId
from worker.attempts.folder import AttemptFolder, ShimRecord
from worker.background import Spawn
from worker.forward.blobs import BlobSender
from worker.forward.checkpoints import CheckpointSink
from worker.forward.environments import EnvironmentReader, EnvironmentSink
from worker.forward.logs import LogSink
from worker.forward.metrics import MetricSink
from worker.forward.notes import NoteSink
from worker.forward.outputs import OutputSink
from worker.forward.written import OutputLimits
from worker.monitoring.user_disk import UserDisk


class FollowerService(LogSink, MetricSink, CheckpointSink, NoteSink, OutputSink, EnvironmentSink, Protocol):
    """Requests that a follower makes to the control plane."""

    def running(self, attempt: AttemptId, started_us: int, start: wire.NodeStart | None = None) -> None: ...
    def start(self, attempt: AttemptId, start: wire.NodeStart) -> None: ...
    def result(self, attempt: AttemptId, result: wire.Result) -> wire.Settled | None: ...
    def settled(self, attempt: AttemptId) -> bool: ...


class Watch(Protocol):
    """Sees one process end."""

    @property
    def said(self) -> bytes | None:
        """The result that it has told before it lies in the folder; None before."""

    def wait(self, seconds: float) -> bool:
        """Return whether it has ended, after waiting for that, or for its result, at most so long."""

    def close(self) -> None: ...


def no_xid(_uuids: Collection[str], _since_us: int) -> None:
    """Return nothing, for nodes without GPUs."""


def no_gpu_memory(_attempt: AttemptId) -> None:
    """Return nothing, for nodes without GPUs."""


@dataclass(frozen=True, kw_only=True)
class FollowerTools:
    """Dependencies that all followers of a node share."""

    service: FollowerService
    blobs: BlobSender
    #: Watches a shim, and the pipe by which it tells its result; one that is gone has ended.
    watch: Callable[[ShimRecord, Path], Watch]
    #: Sweeps what a dead shim left and writes its result; for an attempt without one.
    finalize_lost: Callable[[AttemptId], object]
    #: Called when an attempt enters another phase.
    changed: Callable[[], None]
    #: Runs a function in the background.
    spawn: Spawn
    now: Callable[[], float] = time.monotonic
    #: The Xid of a fault that one of these GPUs (UUIDs) has had since a moment (µs).
    xid: Callable[[Collection[str], int], int | None] = no_xid
    #: The most memory that an attempt has held of a GPU.
    gpu_memory: Callable[[AttemptId], int | None] = no_gpu_memory
    #: How much of what a job writes goes to the store.
    limits: Callable[[], OutputLimits] = OutputLimits
    #: Bytes of disk that an attempt may take; None: no limit.
    disk_limit: Callable[[], int | None] = lambda: None
    #: What the attempts of each user take together.
    user_disk: UserDisk = field(default_factory=UserDisk)
    #: What is installed for the interpreters of jobs.
    environments: EnvironmentReader = field(default_factory=EnvironmentReader)
    #: Learns from an attempt that has ended, by its ``launch.json`` and its owner's uid.
    learn: Callable[[Mapping[str, Any], AttemptFolder, int], None] = lambda _launch, _folder, _owner: None
