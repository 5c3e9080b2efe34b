"""The dashboard's files over real HTTP."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.api import static


def built(folder: Path) -> Path:
    dist = folder / "dist"
    (dist / "assets").mkdir(parents=True)
    (dist / "index.html").write_text("<title>the dashboard</title>")
    (dist / "assets" / "index-abc.js").write_text("1")
    (folder / "secret.txt").write_text("secret")
    return dist


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_files_rooms_and_what_is_not_there(
    serve: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static, "DIST", built(tmp_path))
    with serve() as live:
        for path in ("/", "/jobs/17", "/box"):
            page = live.anonymous.get(path)
            assert "the dashboard" in page.text
            assert page.headers["cache-control"] == "no-cache"
        asset = live.anonymous.get("/assets/index-abc.js")
        assert asset.headers["content-type"].startswith("text/javascript")
        assert "immutable" in asset.headers["cache-control"]
        for path in (
            "/assets/gone.js",
            "/..%2fsecret.txt",
            "/assets/..%2f..%2fsecret.txt",
            "/api/v1/gone",
            "/%2e%2e/secret.txt",
        ):
            answer = live.anonymous.get(path)
            assert answer.status_code == 404, path
            assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_without_the_dashboard_the_page_says_how_to_build_it(
    serve: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static, "DIST", tmp_path / "nothing")
    with serve() as live:
        assert "make dashboard" in live.anonymous.get("/").text


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_dashboard_travels_packed_for_whoever_can_unpack_it(
    serve: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist, script = built(tmp_path), "const answer = 42;\n" * 5_000
    (dist / "assets" / "index-abc.js").write_text(script)
    monkeypatch.setattr(static, "DIST", dist)
    with serve() as live:
        packed = live.anonymous.get("/assets/index-abc.js", headers={"Accept-Encoding": "gzip"})
        plain = live.anonymous.get("/assets/index-abc.js", headers={"Accept-Encoding": "identity"})
        known = live.anonymous.get("/assets/index-abc.js", headers={"If-None-Match": packed.headers["etag"]})
    assert packed.text == plain.text == script
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.num_bytes_downloaded < len(script) / 10
    assert "Accept-Encoding" in packed.headers["vary"]
    assert "content-encoding" not in plain.headers
    assert known.status_code == 304
