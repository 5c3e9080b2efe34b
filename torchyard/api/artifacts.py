"""Snapshots, checkpoints and outputs as the REST API shows them."""

from datetime import datetime
from typing import Literal

from torchyard.api.base import Number, Resource
from torchyard.wire import FileRef


class CheckpointFileInfo(Resource):
    name: str
    size: int
    sha256: str | None


class Checkpoint(Resource):
    id: str
    job: str
    attempt: int
    step: int
    #: committed: on its node only; stored: in the artifact store, hashes checked.
    state: Literal["committed", "stored"]
    best: bool
    pinned: bool
    created_at: datetime
    size: int
    metrics: dict[str, Number]
    files: list[CheckpointFileInfo]


class Output(Resource):
    """A file that the job has written. One name may stand for several files: of other folders, and of other nodes."""

    #: Its path below the folder that `root` names.
    name: str
    size: int
    #: Empty while it is not known.
    sha256: str
    #: ``output``: TORCHYARD_OUTPUT_DIR; ``code``: the working folder; ``job``: beside it, ``../data/x`` is ``data/x``.
    root: Literal["output", "code", "job"] = "output"
    node_rank: int = 0
    #: The node that it was written on, and the number of the attempt.
    node: str | None = None
    attempt: int | None = None
    #: ``stored``: it can be downloaded; ``arriving``: not yet; ``on-node``: too large for the store, it stays on its
    #: node at `place`, until it is asked for or discarded; ``deleted``: the job has removed it.
    state: Literal["stored", "arriving", "on-node", "deleted"] = "stored"
    place: str | None = None
    #: It was asked for, and its node has not brought it yet.
    wanted: bool = False
    #: SHA-256 of the file of this name that the job was submitted with.
    baseline: str | None = None
    mode: int = 0o644


class NewSnapshot(Resource):
    """Manifest of a code snapshot; paths are relative to its folder."""

    files: list[FileRef]


class MissingBlobs(Resource):
    """Hashes to upload (``PUT /snapshots/{id}/blobs/{sha256}``) before ``POST /snapshots/{id}/commit``."""

    id: str
    missing: list[str]
    committed: bool
