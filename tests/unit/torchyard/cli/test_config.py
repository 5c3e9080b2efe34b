import subprocess
from pathlib import Path

import pytest

from torchyard.cli import config
from torchyard.exceptions import TorchYardError


def test_findings_of_both_programs_come_without_another_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("service: {kep_ended: 30d}\nworker: {node_token_file: /nowhere/token}\n")
    monkeypatch.setenv("TORCHYARD_SETTINGS", str(file))
    monkeypatch.delattr(subprocess, "Popen")
    about_service, about_worker = config.findings()
    assert about_service.startswith(f"{file}: service.kep_ended: there is no such setting; did you mean keep_ended?")
    assert about_worker.startswith("node_token_file: there is no file /nowhere/token")


def test_a_file_that_is_no_mapping_is_found_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("sevice: {}\n")
    monkeypatch.setenv("TORCHYARD_SETTINGS", str(file))
    assert config.findings() == [f"{file}: sevice: there is no such section; did you mean service?"]


@pytest.mark.parametrize(
    ("text", "own"),
    [("{}", True), ("service: {redis_url: redis://queue/0}", False), ("service: {kep_ended: 30d}", False)],
    ids=["none", "named", "unreadable"],
)
def test_a_redis_of_its_own_is_started_where_no_setting_names_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, own: bool
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    monkeypatch.setenv("TORCHYARD_SETTINGS", str(file))
    monkeypatch.delenv("TORCHYARD_REDIS_URL", raising=False)
    assert config.starts_redis() is own


def test_a_program_that_has_ended_meanwhile_is_told_of(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    with pytest.raises(TorchYardError, match=rf"the worker \(process {ended.pid}\) has just ended"):
        config.reloaded("worker", ended.pid, tmp_path / "reload.json")
