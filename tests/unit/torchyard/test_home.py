import os
from pathlib import Path

import pytest

from torchyard import home
from torchyard.exceptions import NotRunningError


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The account's own home of a stack, and the installed one, which is there."""
    monkeypatch.delenv("TORCHYARD_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(home, "INSTALLED", tmp_path / "installed")
    monkeypatch.setattr(home, "SERVICE_UNIT", tmp_path / "torchyard.service")
    home.INSTALLED.mkdir()
    return tmp_path / ".torchyard", home.INSTALLED


def test_root_finds_what_yard_install_has_made_unless_there_is_a_stack_of_its_own(places: tuple[Path, Path]) -> None:
    own, installed = places
    assert home.root() == installed
    own.mkdir()
    assert home.root() == own


def test_other_accounts_and_whoever_names_a_home_do_not(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, _ = places
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TORCHYARD_HOME", "/srv/yard")
        assert home.root() == Path("/srv/yard")
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert home.root() == own


def test_jobs_of_a_stack_of_root_lie_where_others_enter_also_while_it_has_no_home_yet(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, installed = places
    assert home.worker_folder() == installed.with_name("installed-worker")
    monkeypatch.setenv("TORCHYARD_HOME", str(own))
    assert home.worker_folder() == home.SHARED_WORKER_FOLDER


def test_an_installed_service_is_started_by_its_unit_and_not_by_a_stack_of_ones_own(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home.start_command() == "yard up", "without the unit"
    home.SERVICE_UNIT.touch()
    assert home.start_command() == "systemctl start torchyard"
    assert "`systemctl start torchyard`" in str(NotRunningError.here())
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert home.start_command() == "yard up", "for an account that has not signed in"
    home.write_login("http://127.0.0.1:8765", "ty_token")
    assert home.start_command() == "systemctl start torchyard"
