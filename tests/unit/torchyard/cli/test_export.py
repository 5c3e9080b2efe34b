"""Metrics as a table: a file is whole or not there, and what may not be written is left alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.api.examples.jobs import JOB
from torchyard.cli.export import ExportFormat, export
from torchyard.exceptions import TorchYardError, UnreachableError
from torchyard.export import rows
from torchyard.export.rows import ExportedPoint

CLIENT: Any = None


def away(*_: Any) -> Iterator[ExportedPoint]:
    raise UnreachableError("the service does not answer")
    yield


def test_no_half_table_is_left_where_the_service_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "read", away)
    with pytest.raises(UnreachableError):
        export(CLIENT, JOB, [], ExportFormat.CSV, str(tmp_path / "points.csv"))
    assert not list(tmp_path.iterdir())


def test_a_file_that_may_not_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "points.csv"
    kept.write_text("of last year")

    def refused(path: Path, *_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refused)  # tests may run as root, whom no mode stops
        with pytest.raises(TorchYardError, match=r"points\.csv: Permission denied"):
            export(CLIENT, JOB, [], ExportFormat.CSV, str(kept))
    assert kept.read_text() == "of last year"


def test_a_reader_of_the_output_that_has_gone_is_no_error_of_the_export(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(rows, "write_csv", gone)
    with pytest.raises(BrokenPipeError):
        export(CLIENT, JOB, [], ExportFormat.CSV, "-")
