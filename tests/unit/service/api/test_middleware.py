from dataclasses import replace
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from service.api import middleware
from service.errors import ProblemError
from service.settings import ServiceSettings

SETTINGS = ServiceSettings(data=Path("/nowhere"), database_url="sqlite://", broker_url="redis://")


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8765", "localhost"),
        ("[::1]:8765", "[::1]"),
        ("[::1]", "[::1]"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("evil.example:80:80", "evil.example:80"),
    ],
)
def test_host_names(header: str, name: str) -> None:
    assert middleware.host_name(header) == name


def test_configured_names_are_allowed() -> None:
    allowed = middleware.allowed_hosts(replace(SETTINGS, host="192.0.2.1", allowed_hosts=("Yard.example",)))
    middleware.check_host("yard.example:443", allowed)
    middleware.check_host("192.0.2.1:8765", allowed)
    with pytest.raises(ProblemError, match="TORCHYARD_ALLOWED_HOSTS"):
        middleware.check_host("other.example", allowed)


@pytest.mark.parametrize(
    ("method", "headers", "allowed"),
    [
        ("GET", {"cookie": "a=b", "origin": "https://evil.example"}, True),
        ("POST", {}, True),
        ("POST", {"authorization": "Bearer x", "cookie": "a=b"}, True),
        ("POST", {"cookie": "a=b"}, False),
        ("POST", {"cookie": "a=b", "origin": "http://yard:1"}, True),
        ("POST", {"cookie": "a=b", "origin": "http://yard:2"}, False),
        ("POST", {"authorization": "Bearer x", "origin": "http://evil"}, False),
        ("DELETE", {"cookie": "a=b", "origin": "null"}, False),
        ("POST", {"authorization": "Bearer x", "origin": "http://["}, False),
        ("POST", {"authorization": "Bearer x", "origin": "http://yard:1@evil"}, False),
    ],
)
def test_origins(method: str, headers: dict[str, str], allowed: bool) -> None:
    given = Headers({"host": "yard:1", **headers})
    if allowed:
        middleware.check_origin(method, given)
        return
    with pytest.raises(ProblemError):
        middleware.check_origin(method, given)


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/api/v1/jobs", 10),
        ("/api/v1/jobs/blobs/x", 10),
        ("/api/v1/agent/heartbeat", middleware.MAX_BATCH),
        ("/api/v1/snapshots", middleware.MAX_BATCH),
        ("/api/v1/session", middleware.MAX_SIGN_IN),
        ("/api/v1/agent/blobs/abc", None),
        ("/api/v1/snapshots/snap-1/blobs/abc", None),
    ],
)
def test_body_limits(path: str, limit: int | None) -> None:
    assert middleware.body_limit(path, 10) == limit
