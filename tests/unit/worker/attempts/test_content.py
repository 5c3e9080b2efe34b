import hashlib
from pathlib import Path

import pytest

from worker.attempts.content import copy, read_chunks, sha256_of


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"short")
    with (tmp_path / "file").open("rb") as file:
        assert sha256_of(file.fileno()) == (hashlib.sha256(b"short").hexdigest(), 5)
        with pytest.raises(OSError, match="shrank"):
            list(read_chunks(file.fileno(), 10))


def test_holes_stay_holes(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as file:
        file.truncate(16 * 2**20)
        for place in (0, 8 * 2**20 + 5):
            file.seek(place)
            file.write(b"x")
        file.flush()
        copy(file.fileno(), tmp_path / "copy", 16 * 2**20)
        assert (tmp_path / "copy").read_bytes() == (tmp_path / "file").read_bytes()
    assert (tmp_path / "copy").stat().st_blocks * 512 < 4 * 2**20
