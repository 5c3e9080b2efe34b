import json
from dataclasses import asdict
from pathlib import Path

import pytest

from service.backup import manifest
from service.backup.exceptions import BackupError
from service.backup.manifest import Manifest

MADE = Manifest(
    made_at="2026-11-25T18:00:00+00:00",
    version="1.0",
    schema="0001",
    database="sqlite",
    installation="yard_1",
    jobs=3,
    blobs=0,
    blob_bytes=0,
    missing_blobs=[],
    keys=[],
    keys_included=False,
    settings={},
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    manifest.write(tmp_path, MADE)
    assert manifest.read(tmp_path) == MADE
    assert manifest.age_words(MADE) == "2026-11-25 18:00 UTC"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "is no backup, or was never finished"),
        ("{", "cannot be read"),
        ("{}", "is no manifest of a backup"),
        (json.dumps(asdict(MADE) | {"format": 2, "version": "9.9"}), r"made by a newer TorchYard \(9.9\)"),
    ],
)
def test_what_is_no_manifest_is_named(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / manifest.NAME).write_text(text)
    with pytest.raises(BackupError, match=words):
        manifest.read(tmp_path)
