import hashlib
from pathlib import Path

import pytest

from worker.attempts.content import read_chunks, sha256_of


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"short")
    with (tmp_path / "file").open("rb") as file:
        assert sha256_of(file.fileno()) == (hashlib.sha256(b"short").hexdigest(), 5)
        with pytest.raises(OSError, match="shrank"):
            list(read_chunks(file.fileno(), 10))
