import errno
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from torchyard import home, settings_in_use
from torchyard.settingsfile import AT_ONCE, Changes


class Settings(BaseModel):
    url: str = "postgresql://yard:hush@box/yard"
    level: int = Field(default=1, json_schema_extra=AT_ONCE)
    words: tuple[str, ...] = Field(default=(), json_schema_extra=AT_ONCE)
    port: int = 1


def test_what_differs_is_told_by_when_it_counts(tmp_path: Path) -> None:
    settings_in_use.publish(tmp_path, Settings(words=("a",)), ())
    assert settings_in_use.pending(tmp_path, Settings(words=("a",))) == Changes([], [])
    found = settings_in_use.pending(tmp_path, Settings(port=2, level=2, words=("b",)))
    assert found == Changes(["level", "words"], ["port"])


def test_what_the_file_does_not_change_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_LEVEL", "1")
    settings_in_use.publish(tmp_path, Settings(), {"port"})
    monkeypatch.delenv("TORCHYARD_LEVEL")
    monkeypatch.setenv("TORCHYARD_URL", "of this shell alone")
    found = settings_in_use.pending(tmp_path, Settings(url="of this shell alone", port=2, level=2, words=("b",)))
    assert found == Changes(["words"], [])


def test_no_value_is_kept_and_nobody_else_reads_it(tmp_path: Path) -> None:
    settings_in_use.publish(tmp_path, Settings(), ())
    (file,) = tmp_path.iterdir()
    assert "hush" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_program_that_reads_another_file_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_SETTINGS", "/etc/other.yaml")
    settings_in_use.publish(tmp_path, Settings(), ())
    monkeypatch.delenv("TORCHYARD_SETTINGS")
    with pytest.raises(LookupError, match=r"/etc/other\.yaml"):
        settings_in_use.pending(tmp_path, Settings(port=2))


def test_a_program_that_has_said_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        settings_in_use.pending(tmp_path, Settings())


def test_a_full_disk_stops_nobody_and_leaves_nothing_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_in_use.publish(tmp_path, Settings(), ())

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(home, "write_private", full)
    settings_in_use.publish(tmp_path, Settings(level=2), ())
    assert not list(tmp_path.iterdir())
