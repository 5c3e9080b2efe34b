"""Snapshots, checkpoints and outputs as the REST API shows them."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict

from torchyard.api.base import Number, Resource
from torchyard.wire import FileRef


class CheckpointFileInfo(Resource):
    name: str
    """Its path within the checkpoint."""
    size: int
    """Bytes."""
    sha256: str | None
    """SHA-256 of its content; null: not known yet."""


class Checkpoint(Resource):
    id: str
    """Its id."""
    job: str
    """Id of the job that wrote it."""
    attempt: int
    """Number of the attempt that wrote it."""
    step: int
    """Step after which it was written."""
    state: Literal["committed", "stored"]
    """`committed`: on its node only; `stored`: in the artifact store, with hashes checked."""
    best: bool
    """Whether it is the best by the spec's `checkpoint.keep_best`."""
    pinned: bool
    """Whether a job needs it, so that it cannot be deleted."""
    created_at: datetime
    """When it was written."""
    size: int
    """Bytes of all its files."""
    metrics: dict[str, Number]
    """Metrics that were reported with it."""
    files: list[CheckpointFileInfo]
    """Its files."""


class Output(Resource):
    """A file that the job has written. One name may stand for several files: of other folders, and of other nodes."""

    name: str
    """Its path below the folder that `root` names."""
    size: int
    """Bytes."""
    sha256: str
    """SHA-256 of its content; empty while it is not known."""
    root: Literal["output", "code", "job"] = "output"
    """Its folder. `output`: TORCHYARD_OUTPUT_DIR; `code`: the working folder; `job`: beside it, ``../data/x`` is
    ``data/x``."""
    node_rank: int = 0
    """Place of its node among the attempt's nodes, from 0."""
    node: str | None = None
    """The node that it was written on."""
    attempt: int | None = None
    """Number of the attempt that wrote it."""
    state: Literal["stored", "arriving", "on-node", "deleted"] = "stored"
    """``stored``: it can be downloaded; ``arriving``: not yet; ``on-node``: too large for the store, it stays on its
    node at `place`, until it is asked for or discarded; ``deleted``: the job has removed it."""
    place: str | None = None
    """Where it lies on its node, if it stays there."""
    wanted: bool = False
    """It was asked for, and its node has not brought it yet."""
    baseline: str | None = None
    """SHA-256 of the file of this name that the job was submitted with."""
    mode: int = 0o644
    """Permission bits; 0o120000 for a symbolic link, whose content is where it leads."""


class NewSnapshot(Resource):
    """Manifest of a code snapshot; paths are relative to its folder."""

    files: list[FileRef]
    """The snapshot's files."""


class PruneSnapshots(Resource):
    """A request to remove those of your snapshots of code that no job is on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    discarded: bool = False
    """And those of discarded jobs alone: these jobs cannot be run again then."""


class RemovedCode(Resource):
    """Snapshots that were removed, and their bytes."""

    snapshots: int
    """How many."""
    size: int
    """Their bytes."""


class MissingBlobs(Resource):
    """Hashes to upload (``PUT /snapshots/{id}/blobs/{sha256}``) before ``POST /snapshots/{id}/commit``."""

    id: str
    """Id of the snapshot."""
    missing: list[str]
    """SHA-256 of each file that has yet to be uploaded."""
    committed: bool
    """Whether the snapshot can be used as `code` of a spec."""
