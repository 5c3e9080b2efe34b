"""``python -m service`` as a process."""

import json
import os
import pwd
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from service import __main__ as command
from tests.support import disks
from tests.support.live import connect, process
from tests.support.specs import spec
from torchyard import home
from torchyard.cli import main
from torchyard.client import unix_sign_in


def test_it_says_when_it_is_ready_and_ends_quickly(empty_database_url: str, yard_home: Path) -> None:
    with process(empty_database_url, yard_home) as (child, url):
        assert home.read_address() == {"url": url, "pid": child.pid}
        token = home.admin_token_file().read_text().strip()
        with connect(url, token) as client:
            assert client.get("/api/v1/jobs").status_code == 200
            started = time.monotonic()
            child.terminate()
            assert child.wait(60) == 0
            assert time.monotonic() - started < 40
    assert home.read_address() is None


def test_jobs_outlive_the_service(database_url: str, yard_home: Path) -> None:
    with process(database_url, yard_home) as (child, url):
        token = home.admin_token_file().read_text().strip()
        with connect(url, token) as client:
            job = client.post("/api/v1/jobs", json=spec()).json()
        child.kill()
    with process(database_url, yard_home) as (_, url), connect(url, token) as client:
        assert client.get(f"/api/v1/jobs/{job['number']}").json()["id"] == job["id"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_it_binds_beyond_loopback_only_behind_a_proxy(
    yard_home: Path, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    assert command.main(["--host", host, "--port", "0"]) == 2
    assert "--behind-proxy" in capsys.readouterr().err
    assert not (yard_home / "service").exists()


def test_behind_a_proxy_it_binds_everywhere_and_cookies_are_secure(yard_home: Path) -> None:
    url = f"sqlite:///{yard_home / 'x.db'}"
    with process(url, yard_home, TORCHYARD_HOST="0.0.0.0", TORCHYARD_BEHIND_PROXY="1") as (_, address):
        token = home.admin_token_file().read_text().strip()
        with connect(address, None) as browser:
            answer = browser.post("/api/v1/session", json={"token": token}, headers={"Origin": address})
            assert "Secure" in answer.headers["set-cookie"]


def test_a_taken_port_is_said(yard_home: Path) -> None:
    url = f"sqlite:///{yard_home / 'x.db'}"
    with process(url, yard_home) as (_, address):
        words = [sys.executable, "-m", "service", "--port", address.rpartition(":")[2]]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "cannot start" in done.stderr


def test_a_second_service_on_one_sqlite_database_is_refused(yard_home: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{yard_home / 'x.db'}"
    with process(url, yard_home) as (first, address):
        environment = {**os.environ, "TORCHYARD_HOME": str(tmp_path / "other"), "TORCHYARD_DATABASE_URL": url}
        words = [sys.executable, "-m", "service", "--port", "0"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"process {first.pid} serves the SQLite database" in done.stderr
        assert "TORCHYARD_DATABASE_URL" in done.stderr
        assert home.read_address() == {"url": address, "pid": first.pid}


def test_a_full_disk_is_said_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with disks.small(tmp_path / "disk", 1) as disk:
        monkeypatch.setenv("TORCHYARD_HOME", str(disk))
        disks.fill(disk / "full")
        words = [sys.executable, "-m", "service", "--port", "0"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("The service cannot start: The service's disk is full: free space where its database")
    assert last.endswith(f"({disk / 'service'})")


@pytest.fixture
def yard(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command line in this process."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["yard", *words])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return subprocess.CompletedProcess(words, int(ended.value.code or 0), *capsys.readouterr())

    return run


def test_settings_are_read_anew_without_a_restart(
    yard_home: Path, yard: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    file = yard_home / "settings.yaml"
    file.write_text("service: {keep_ended: 90d}\n")
    with process(f"sqlite:///{yard_home / 'x.db'}", yard_home) as (child, url):
        token = home.admin_token_file().read_text().strip()
        with connect(url, token) as client:
            assert client.get("/api/v1/settings").json()["keep_ended_s"] == 90 * 86_400
            file.write_text("service: {keep_ended: 30d, heartbeat_s: 2}\n")
            assert yard("config", "check").stdout == (
                "service.keep_ended: the service runs with another value: `yard config reload`\n"
                "service.heartbeat_s: the service runs with another value until it is restarted\n"
            )
            said = yard("config", "reload")
            assert said.stdout == "service: changed: keep_ended\nservice: counts after a restart: heartbeat_s\n"
            pending = json.loads(yard("config", "check", "--json").stdout)["pending"]
            assert pending == {"service": {"reload": [], "restart": ["heartbeat_s"]}}
            assert client.get("/api/v1/settings").json()["keep_ended_s"] == 30 * 86_400
            file.write_text("service: {kep_ended: 30d}\n")
            wrong = yard("config", "reload")
            assert wrong.returncode == 1
            assert "did you mean keep_ended?" in wrong.stderr
            assert client.get("/api/v1/settings").json()["keep_ended_s"] == 30 * 86_400
        assert child.poll() is None
    file.write_text("service: {kep_ended: 30d}\nworker: {node_token_file: /nowhere/token}\n")
    checked = yard("config", "check")
    assert checked.returncode == 1
    assert "did you mean keep_ended?" in checked.stdout
    assert "node_token_file: there is no file" in checked.stdout
    file.write_text("service: {keep_ended: 30d}\nworker: {labels: [a100]}\n")
    assert yard("config", "check").returncode == 0


def test_a_reload_opens_and_closes_the_socket_of_unix_accounts(
    yard_home: Path, open_tmp: Path, yard: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    file, path = yard_home / "settings.yaml", open_tmp / "sign-in.sock"
    told = (
        f"service: {{sign_in_socket: {path}, unix_administrators: {pwd.getpwuid(os.geteuid()).pw_name}, unix_sign_in: "
    )
    file.write_text(f"{told}off}}\n")
    with process(f"sqlite:///{yard_home / 'x.db'}", yard_home) as (_, url):
        assert not path.exists()
        file.write_text(f"{told}existing}}\n")
        assert yard("config", "reload").stdout == "service: changed: unix_sign_in\n"
        assert unix_sign_in.sign_in(path).url == url
        file.write_text(f"{told}off}}\n")
        assert yard("config", "reload").stdout == "service: changed: unix_sign_in\n"
        assert not path.exists()
        path.write_text("precious")
        file.write_text(f"{told}existing}}\n")
        said = yard("config", "reload")
        assert said.returncode == 0
        assert f"service: nobody signs in by UNIX account: {path} is no socket: remove it" in said.stdout
        assert path.read_text() == "precious"
        path.unlink()
        assert yard("config", "reload").stdout == "service: changed: nothing\n"
        assert path.is_socket(), "once what stood in the way is gone"
    assert not path.exists()
