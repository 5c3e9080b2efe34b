"""File system of a folder: whether it is a network's, where SQLite's WAL and flock break; whether it takes a file."""

import re
import tempfile
from pathlib import Path

from torchyard.exceptions import NetworkHomeError

NETWORK = frozenset(
    {
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.ceph",
        "fuse.glusterfs",
        "fuse.juicefs",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
    }
)
_MOUNTS = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")


def kind(folder: Path, mountinfo: str | None = None) -> str:
    """The type of the file system that holds a folder (``ext4``, ``nfs4``), which need not exist yet.

    `mountinfo` replaces the text of ``/proc/self/mountinfo``; where neither is there the answer is ``unknown``.
    """
    if mountinfo is None:
        mountinfo = _MOUNTS.read_text() if _MOUNTS.exists() else ""
    target = folder.resolve()
    best, found = -1, "unknown"
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        point = Path(_OCTAL.sub(lambda match: chr(int(match.group(1), 8)), before.split()[4]))
        # A later mount on the same point hides the earlier one, hence >=.
        if target.is_relative_to(point) and len(point.parts) >= best:
            best, found = len(point.parts), after.split()[0]
    return found


def refuse_network(folder: Path) -> None:
    """Raise NetworkHomeError when the folder lies on a network file system."""
    found = kind(folder)
    if found in NETWORK:
        raise NetworkHomeError(
            f"{folder} lies on a network file system ({found}), where SQLite and file locks are not safe: "
            "set TORCHYARD_HOME to a folder on a local disk, such as /var/tmp/torchyard"
        )


def refusal(folder: Path) -> OSError | None:
    """Return why a folder takes no new file, which free bytes do not tell: no inode is left, say, or the kernel has
    made its disk read-only after an error.
    """
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return error
    return None
