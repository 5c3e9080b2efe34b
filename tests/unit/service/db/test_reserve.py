"""Space that is kept for a full disk."""

from pathlib import Path

from service.db.reserve import SIZE, DiskReserve
from tests.support import disks


def test_space_is_there_on_a_full_disk_and_taken_again(tmp_path: Path) -> None:
    with disks.small(tmp_path / "disk", 16) as disk:
        file = disk / "reserve"
        reserve = DiskReserve(file)
        reserve.take()
        assert file.stat().st_blocks * 512 == SIZE
        with reserve.lent():
            assert file.exists()
        disks.fill(disk / "full")
        with reserve.lent():
            (disk / "written").write_bytes(bytes(SIZE // 2))
        assert file.stat().st_blocks * 512 == SIZE // 2
        (disk / "full").unlink()
        with reserve.lent():
            pass
        assert file.stat().st_blocks * 512 == SIZE


def test_a_disk_without_space_keeps_none_and_hinders_nobody(tmp_path: Path) -> None:
    with disks.small(tmp_path / "disk", 1) as disk:
        disks.fill(disk / "full")
        reserve = DiskReserve(disk / "reserve")
        reserve.take()
        with reserve.lent():
            assert not (disk / "reserve").exists()
        assert DiskReserve(disk / "absent" / "reserve").take() is None
