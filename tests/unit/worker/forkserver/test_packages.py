import os
from pathlib import Path

from worker.forkserver import packages


def test_a_change_of_a_package_shows_and_one_of_other_files_does_not(tmp_path: Path) -> None:
    (tmp_path / "torch-2.dist-info").mkdir()
    (tmp_path / "local.pth").write_text("/src\n")
    module = tmp_path / "torch.py"
    module.write_text("")

    def stamps() -> list[packages.Stamp]:
        return packages.stamps([str(tmp_path), str(tmp_path / "none")], [str(module), str(tmp_path / "none.py")])

    first = stamps()
    assert len(first) == 3
    (tmp_path / "notes.txt").write_text("")
    assert stamps() == first
    (tmp_path / "local.pth").write_text("/src\n/other\n")
    second = stamps()
    assert second != first
    (tmp_path / "numpy-2.dist-info").mkdir()
    third = stamps()
    assert third != second
    os.utime(module, ns=(1, 1))
    assert stamps() != third
