"""TLS of the service itself, with real uvicorn."""

import ssl
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support import certificates
from tests.support.live import connect, process
from tests.support.wait import until
from torchyard import home


def serial(port: int) -> str:
    """The certificate that is served, as PEM."""
    return ssl.get_server_certificate(("127.0.0.1", port))


def test_a_renewed_certificate_is_served_without_a_restart(yard_home: Path, tmp_path: Path, port: int) -> None:
    certificate, key = certificates.write(tmp_path)
    files = {"TORCHYARD_TLS_CERT": str(certificate), "TORCHYARD_TLS_KEY": str(key), "TORCHYARD_PORT": str(port)}
    with process(f"sqlite:///{yard_home / 'x.db'}", yard_home, **files) as (child, local):
        assert local.startswith("http://127.0.0.1:"), "programs on this machine need no certificate"
        token = home.admin_token_file().read_text().strip()
        with connect(local, token) as client:
            assert client.get("/api/v1/jobs").status_code == 200
        url = f"https://127.0.0.1:{port}"
        trusted = ssl.create_default_context(cafile=certificate)
        with httpx.Client(base_url=url, verify=trusted, trust_env=False) as browser:
            answer = browser.post("/api/v1/session", json={"token": token}, headers={"Origin": url})
            assert answer.status_code == 201, answer.text
            assert "Secure" in answer.headers["set-cookie"]
        before = serial(port)
        certificates.write(tmp_path)
        until(lambda: serial(port) != before, what="the renewed certificate")
        assert serial(port) == certificate.read_text()
        assert child.poll() is None
        child.terminate()
        assert child.wait(30) == 0


def test_forwarded_headers_count_behind_a_proxy_alone(yard_home: Path) -> None:
    for behind_proxy in (False, True):
        switch = {"TORCHYARD_BEHIND_PROXY": str(int(behind_proxy))}
        with process(f"sqlite:///{yard_home / 'x.db'}", yard_home, **switch) as (_, url), connect(url, None) as client:
            headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7", "Origin": url}
            token = home.admin_token_file().read_text().strip()
            answer = client.post("/api/v1/session", json={"token": token}, headers=headers)
            assert ("Secure" in answer.headers["set-cookie"]) is behind_proxy


def test_a_key_that_lies_open_is_refused(yard_home: Path, tmp_path: Path) -> None:
    certificate, key = certificates.write(tmp_path)
    key.chmod(0o640)
    command = [sys.executable, "-m", "service", "--tls-cert", str(certificate), "--tls-key", str(key), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert f"`chmod 0600 {key}`" in done.stderr
