import errno
from pathlib import Path

import pytest

from tests.support import disks
from torchyard.exceptions import NetworkHomeError
from torchyard.stack import filesystem

MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /home rw shared:2 - nfs4 server:/home rw
31 30 254:1 / /home/scratch rw - xfs /dev/vdb rw
32 22 0:41 / /mnt/big\040disk rw - cifs //server/share rw
33 22 0:42 / /data rw - tmpfs tmpfs rw
34 22 0:43 / /data rw - lustre mds:/data rw
""".strip()


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/tmp/torchyard", "ext4"),
        ("/home/someone/.torchyard", "nfs4"),
        ("/home/scratch/someone", "xfs"),
        ("/homework", "ext4"),
        ("/mnt/big disk/yard", "cifs"),
        ("/data/yard", "lustre"),
    ],
)
def test_the_deepest_and_latest_mount_decides(folder: str, kind: str) -> None:
    assert filesystem.kind(Path(folder), MOUNTS) == kind


def test_an_unknown_machine_is_not_refused() -> None:
    assert filesystem.kind(Path("/anywhere"), "") == "unknown"


def test_a_network_home_is_refused_with_the_mend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    monkeypatch.setattr(filesystem, "_MOUNTS", mounts)
    filesystem.refuse_network(Path("/var/tmp/torchyard"))
    with pytest.raises(NetworkHomeError, match=r"nfs4.*set TORCHYARD_HOME to a folder on a local disk"):
        filesystem.refuse_network(Path("/home/someone/.torchyard"))


def test_a_folder_says_why_it_takes_no_file(tmp_path: Path) -> None:
    assert filesystem.refusal(tmp_path) is None
    with disks.small(tmp_path / "disk", 1, inodes=2) as disk:  # the folder itself has one
        assert filesystem.refusal(disk) is None
        (disk / "file").touch()
        error = filesystem.refusal(disk)
    assert error is not None
    assert error.errno == errno.ENOSPC
