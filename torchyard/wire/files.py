"""Files of snapshots, checkpoints and outputs."""

import stat
from enum import StrEnum
from typing import Final

from torchyard.ids import AttemptId
from torchyard.numbers import NonFinite
from torchyard.wire.protocol import DescribedMessage, Message, Text

#: Bits of a mode that tell the kind of a file.
_KIND: Final = 0o170000


class Root(StrEnum):
    """The folder of an attempt that the path of one of its files is relative to."""

    #: ``TORCHYARD_OUTPUT_DIR``.
    OUTPUT = "output"
    #: The working folder of the code.
    CODE = "code"
    #: The folder above it: what the program calls ``../data/x`` is ``data/x`` here.
    JOB = "job"


class Place(Message):
    """One of an attempt's files on one node."""

    root: Root
    path: str


class FileRef(DescribedMessage):
    """One file of a snapshot, checkpoint or output: where it goes and what it holds."""

    path: str
    """Its path below the folder."""
    size: int
    """Bytes."""
    sha256: str
    """SHA-256 of its content."""
    mode: int = 0o644
    """Permission bits; of a symbolic link its kind alone, as its content is where it leads."""

    @property
    def is_link(self) -> bool:
        return self.mode & _KIND == stat.S_IFLNK


class Restore(Message):
    """The checkpoint to resume from.

    A file's hash is empty while the checkpoint is only committed: it then lies on this node, in folder `name` of
    `attempt`'s checkpoints.
    """

    checkpoint: str
    step: int
    files: list[FileRef]
    attempt: AttemptId = AttemptId("")
    name: str = ""


class CarriedFile(FileRef):
    """A file that an earlier attempt left, for the next one to find."""

    root: Root
    #: The attempt that left it.
    attempt: AttemptId
    #: It is not in the store, but still on that attempt's node.
    on_node: bool = False
    #: It is of the same job: nobody else needs it there.
    move: bool = False


class Carry(Message):
    """The files that an attempt finds as the one before it left them."""

    #: The attempt before.
    attempt: AttemptId
    #: All that it left is known; if not, the node asks again.
    settled: bool
    files: list[CarriedFile]
    #: What it had removed.
    deleted: list[Place] = []


class CheckpointFile(Message):
    path: str
    size: int
    sha256: str | None = None


class CheckpointReport(Message):
    """``POST /agent/attempts/{id}/checkpoints``: first without hashes (committed), again with them (verified).

    Answered by `CheckpointAnswer`.
    """

    name: str
    step: int
    created_us: int
    metrics: dict[Text, float | NonFinite] = {}
    files: list[CheckpointFile]


class CheckpointAnswer(Message):
    """Files that the store still lacks, by hash; empty with all hashes given: the checkpoint is stored."""

    checkpoint: str
    missing: list[str]
    #: Names of this attempt's checkpoints whose local folders the node may remove.
    remove: list[str] = []


class WrittenFile(FileRef):
    """A file that the job has written or changed outside its output folder, or one that stays on the node."""

    root: Root = Root.CODE
    #: It is not to be stored: it stays on the node, below `OutputReport.kept`. Its hash may be empty.
    on_node: bool = False


class OutputReport(Message):
    """``POST /agent/attempts/{id}/outputs``: files that the job has written, with hashes; answered by `Missing`.

    A report adds to earlier ones, and replaces what they said of the same files.
    """

    #: What lies in the output folder.
    files: list[FileRef]
    #: What lies elsewhere; a service of the version before does not read it.
    written: list[WrittenFile] = []
    #: Files of the snapshot, and files reported or carried earlier, that are no longer there.
    deleted: list[Place] = []
    #: Folder on the node of those that stay there.
    kept: str = ""
    #: The attempt has got further than the files that it began with: it has saved something.
    saved: bool = False


class Missing(Message):
    """Hashes that the store lacks: place them in the inbox, or PUT them to ``/agent/blobs/{sha256}``."""

    missing: list[str]
    #: Bytes that may be copied to the store before its disk is too full; None: not told.
    room: int | None = None


class Placed(Message):
    """``POST /agent/blobs/{sha256}``: the file lies in the inbox; the service checks it and takes it over; 204.

    `placed` is its name there, ``<sha256>.<random>``.
    """

    placed: str
    size: int
    #: A second name of a file that nobody writes any more, whose first name goes afterwards: taken from the service's
    #: own UNIX user only.
    linked: bool = False
