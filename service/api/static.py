"""The dashboard's files, or a page that says how to build them. Paths of the dashboard's views get its page, and
``/docs`` the explorer of the REST API.
"""

import re
from contextlib import suppress
from pathlib import Path

from fastapi import Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from service.errors import not_found

DIST = Path(__file__).parents[1] / "dashboard" / "dist"
#: Built files carry their content's hash in their names.
FOREVER = "public, max-age=31536000, immutable"
#: What the build has packed lies beside each file, with these endings; the smallest comes first.
PACKED = {"br": ".br", "gzip": ".gz"}
#: An encoding that a browser names to refuse it.
REFUSED = re.compile(r";\s*q=0(\.0*)?\s*$")
API = ("/api/", "/healthz", "/readyz", "/metrics", "/openapi.json")

#: Views whose addresses may have dots: tokens of public links do.
DOTTED_VIEWS = "shared/"

NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>TorchYard</title>
<h1>TorchYard is running</h1>
<p>The dashboard is not built here: run <code>make dashboard</code> (it needs Node, or takes the one from PyPI) and load
this page again.</p>
<p>The API is at <code>/api/v1</code>, its description at <a href="/openapi.json">/openapi.json</a>.</p>
</html>
"""


class DashboardFiles:
    """Serve the paths that no route of the API has."""

    def __init__(self, dist: Path | None = None) -> None:
        self._dist = dist or DIST
        self._files = StaticFiles(directory=self._dist, check_dir=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"].startswith(API) or scope["method"] not in {"GET", "HEAD"}:
            raise not_found("resource", scope["path"])
        await (await self._page(scope))(scope, receive, send)

    async def _page(self, scope: Scope) -> Response:
        if not (self._dist / "index.html").is_file():
            return HTMLResponse(NOT_BUILT)
        path = scope["path"].strip("/")
        if path.startswith(DOTTED_VIEWS) or "." not in path.rpartition("/")[2]:
            return await self._page_file("docs.html" if path == "docs" else "index.html", scope)
        return await self._file(path, scope)

    async def _page_file(self, name: str, scope: Scope) -> Response:
        page = await self._smallest(name, scope)
        page.headers["Cache-Control"] = "no-cache"
        return page

    async def _file(self, path: str, scope: Scope) -> Response:
        try:
            file = await self._smallest(path, scope)
        except HTTPException as error:
            raise not_found("file", path) from error
        if path.startswith("assets/"):
            file.headers["Cache-Control"] = FOREVER
        return file

    async def _smallest(self, path: str, scope: Scope) -> Response:
        """Take the smallest form of a file that the browser can unpack; each has an ETag of its own."""
        file = await self._packed(path, scope) or await self._files.get_response(path, scope)
        file.headers.add_vary_header("Accept-Encoding")
        return file

    async def _packed(self, path: str, scope: Scope) -> Response | None:
        taken = accepted(Headers(scope=scope).get("accept-encoding", ""))
        for encoding in (each for each in PACKED if each in taken):
            with suppress(HTTPException):
                file = await self._files.get_response(path + PACKED[encoding], scope)
                if file.status_code != 304:
                    file.headers["Content-Encoding"] = encoding
                return file
        return None


def accepted(header: str) -> set[str]:
    """Read which encodings an ``Accept-Encoding`` names and does not refuse (RFC 9110, 12.5.3)."""
    named = [each for each in header.lower().split(",") if not REFUSED.search(each)]
    return {each.partition(";")[0].strip() for each in named}
