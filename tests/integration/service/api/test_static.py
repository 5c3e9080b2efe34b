"""The dashboard's files over real HTTP."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.api import static


@dataclass(frozen=True)
class Form:
    """An answer as it travelled."""

    status_code: int
    headers: httpx.Headers
    raw: bytes


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
def test_a_browser_gets_the_smallest_form_that_it_unpacks(
    serve: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist, script = built(tmp_path), "const answer = 42;\n" * 5_000
    asset = dist / "assets" / "index-abc.js"
    asset.write_text(script)
    Path(f"{asset}.gz").write_bytes(gzip.compress(script.encode()))
    Path(f"{asset}.br").write_bytes(b"brotli")
    Path(f"{dist / 'index.html'}.gz").write_bytes(gzip.compress(b"<title>packed</title>"))
    monkeypatch.setattr(static, "DIST", dist)
    with serve() as live:

        def get(accepted: str, path: str = "/assets/index-abc.js", **headers: str) -> Form:
            with live.anonymous.stream("GET", path, headers={"Accept-Encoding": accepted, **headers}) as answer:
                return Form(answer.status_code, answer.headers, b"".join(answer.iter_raw()))

        brotli, packed, plain = get("gzip, deflate, br, zstd"), get("gzip, br;q=0"), get("identity")
        pages = [get("br, gzip", path) for path in ("/", "/jobs/17")]
        known = [
            get(name, **{"If-None-Match": form.headers["etag"]}) for name, form in (("br", brotli), ("gzip", packed))
        ]
        other = get("gzip", **{"If-None-Match": brotli.headers["etag"]})
    assert brotli.raw == b"brotli"
    assert gzip.decompress(packed.raw) == plain.raw == script.encode()
    assert len({form.headers["etag"] for form in (brotli, packed, plain)}) == 3
    for form, encoding in ((brotli, "br"), (packed, "gzip"), (plain, None)):
        assert form.headers.get("content-encoding") == encoding
        assert form.headers["content-type"].startswith("text/javascript")
        assert "immutable" in form.headers["cache-control"]
        assert form.headers["vary"] == "Accept-Encoding"
        assert int(form.headers["content-length"]) == len(form.raw)
    # Where a form was not built the next one goes.
    assert [gzip.decompress(page.raw) for page in pages] == [b"<title>packed</title>"] * 2
    assert {page.headers["content-type"] for page in pages} == {"text/html; charset=utf-8"}
    assert [(form.status_code, form.headers.get("content-encoding")) for form in known] == [(304, None)] * 2
    assert other.status_code == 200
