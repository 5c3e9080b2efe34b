"""The dashboard's files, or a page that says how to build them. Paths of the dashboard's views get its page, and
``/docs`` the explorer of the REST API.
"""

from pathlib import Path

from fastapi import Response
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from service.errors import not_found

DIST = Path(__file__).parents[1] / "dashboard" / "dist"
#: Built files carry their content's hash in their names.
FOREVER = "public, max-age=31536000, immutable"
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
        page = await self._files.get_response(name, scope)
        page.headers["Cache-Control"] = "no-cache"
        return page

    async def _file(self, path: str, scope: Scope) -> Response:
        try:
            file = await self._files.get_response(path, scope)
        except HTTPException as error:
            raise not_found("file", path) from error
        if path.startswith("assets/"):
            file.headers["Cache-Control"] = FOREVER
        return file
