import hashlib
import os
from pathlib import Path

import pytest

from torchyard import snapshot
from torchyard.exceptions import SnapshotError


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def paths(root: Path) -> list[str]:
    return [file.path for file in snapshot.take(root).files]


def test_ignore_files_count_at_every_level(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "*.ckpt\n/data/\nbuild/\n",
            ".yardignore": "notes.txt\n!keep.ckpt\n",
            "train.py": "",
            "a.ckpt": "",
            "keep.ckpt": "",
            "notes.txt": "",
            "data/x.bin": "",
            "pkg/.gitignore": "secret.py\n!b.ckpt\n",
            "pkg/secret.py": "",
            "pkg/b.ckpt": "",
            "pkg/data/table.csv": "",
            "pkg/build/out.o": "",
        },
    )
    assert paths(tmp_path) == [
        ".gitignore",
        ".yardignore",
        "keep.ckpt",
        "pkg/.gitignore",
        "pkg/b.ckpt",
        "pkg/data/table.csv",
        "train.py",
    ]


def test_rules_of_the_repository_above_count(tmp_path: Path) -> None:
    write(
        tmp_path,
        {".git/HEAD": "", ".gitignore": "*.log\n/exp/big/\n", "exp/a.log": "", "exp/big/x": "", "exp/t.py": ""},
    )
    assert paths(tmp_path / "exp") == ["t.py"]


def test_repositories_caches_and_environments_never_travel(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".git/HEAD": "",
            "__pycache__/t.pyc": "",
            "sub/__pycache__/t.pyc": "",
            "venv-torch/pyvenv.cfg": "",
            "env/conda-meta/history": "",
            "t.py": "",
        },
    )
    assert paths(tmp_path) == ["t.py"]


def test_links_are_files_or_notices(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"real.py": "print()", "folder/x": ""})
    (tmp_path / "outside").write_text("secret")
    (root / "inside").symlink_to("real.py")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "gone").symlink_to("nothing")
    (root / "dir").symlink_to("folder")
    taken = snapshot.take(root)
    assert sorted(taken.paths) == ["folder/x", "inside", "real.py"]
    assert [notice.split()[0] for notice in taken.notices] == ["dir", "gone", "out"]
    assert taken.notices[0].endswith("`link: [dir]` joins it in on the node (yard run: --link dir)")
    assert taken.notices[1] == f"gone is left out: it is a link to {root / 'nothing'}, which does not exist"
    assert f"a link out of the folder, to {tmp_path / 'outside'}; `link: [out]`" in taken.notices[2]


def test_what_is_joined_in_is_neither_read_nor_told(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"t.py": "", "data/x": "x" * 2000, "sub/tb.py": "", "sub/kept": ""})
    (root / "far").symlink_to(tmp_path)
    taken = snapshot.take(root, joined=("data", "sub/tb.py", "far"), max_bytes=1000)
    assert sorted(taken.paths) == ["sub/kept", "t.py"]
    assert not taken.notices


def test_a_file_has_its_hash_its_size_and_its_executable_bit(tmp_path: Path) -> None:
    write(tmp_path, {"run.sh": "#!/bin/sh\n", "empty": ""})
    (tmp_path / "run.sh").chmod(0o750)
    empty, run = snapshot.take(tmp_path).files
    assert (empty.size, empty.mode, empty.sha256) == (0, 0o644, hashlib.sha256(b"").hexdigest())
    assert (run.size, run.mode) == (10, 0o755)


def test_pipes_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert paths(tmp_path) == []


def test_a_folder_that_is_too_large_names_the_offenders_and_the_mend(tmp_path: Path) -> None:
    write(tmp_path, {"data/a": "x" * 600, "data/b": "x" * 600, "t.py": "x"})
    with pytest.raises(SnapshotError) as caught:
        snapshot.take(tmp_path, max_bytes=1000)
    message = str(caught.value)
    assert "data/" in message
    assert message.index("data/") < message.index("t.py")
    for mend in (".yardignore", "link:", "live:"):
        assert mend in message


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {f"many/{n}": "" for n in range(11)})
    with pytest.raises(SnapshotError, match="11 files"):
        snapshot.take(tmp_path, max_files=10)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="not a folder"):
        snapshot.take(tmp_path / "nothing")
