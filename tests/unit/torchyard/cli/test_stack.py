"""Options of ``yard up``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from torchyard.cli import stack
from torchyard.exceptions import StartError
from torchyard.stack.up import StackOptions

NOTHING: dict[str, Any] = dict.fromkeys(("host", "port", "behind_proxy", "tls_cert", "tls_key"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOST", "PORT", "BEHIND_PROXY", "TLS_CERT", "TLS_KEY", "LOCAL_PORT", "REDIS_URL", "SETTINGS"):
        monkeypatch.delenv(f"TORCHYARD_{name}", raising=False)
    monkeypatch.setenv("TORCHYARD_HOME", str(tmp_path))
    return tmp_path


def options(said: Mapping[str, Any] = NOTHING) -> StackOptions:
    return stack.stack_options(said, cpu_slots=None, stop_jobs=False)


def test_without_settings_a_stack_has_its_defaults() -> None:
    assert options() == StackOptions()


def test_the_settings_file_counts_for_a_stack(home: Path) -> None:
    (home / "settings.yaml").write_text(
        "service: {host: '::1', port: 9000, tls_cert: /c.pem, tls_key: /k.pem, local_port: 9001, "
        "redis_url: 'redis://box/1'}"
    )
    found = options()
    assert (found.host, found.port, found.local_port) == ("::1", 9000, 9001)
    assert (found.tls_cert, found.tls_key, found.redis_url) == (Path("/c.pem"), Path("/k.pem"), "redis://box/1")


def test_an_option_comes_before_a_variable_and_a_variable_before_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "settings.yaml").write_text("service: {port: 9000, host: '::1'}")
    monkeypatch.setenv("TORCHYARD_PORT", "9100")
    assert (options().host, options().port) == ("::1", 9100)
    assert options(NOTHING | {"port": 0}).port == 0


def test_a_setting_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_PORT", "eighty")
    with pytest.raises(StartError, match="TORCHYARD_PORT: 'eighty'"):
        options()
