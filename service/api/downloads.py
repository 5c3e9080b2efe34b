"""Files of the store as answers: whole, in ranges, or not at all when the client has them."""

import posixpath
import re

from fastapi import Request, Response
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import FileResponse

from service.api.answers import not_modified
from service.api.problems import HttpProblemError
from service.errors import ProblemError, not_found
from service.storage.store import BlobStore
from torchyard.translatable import TranslatableText


class AnyName(PathConvertor):
    """``{name:file}`` in a route: like ``path``, for names with line ends too."""

    regex = r"[\s\S]*"


register_url_convertor("file", AnyName())

_RANGE = re.compile(r"\s*bytes\s*=(.+)", re.IGNORECASE)
_PART = re.compile(r"\s*(\d{0,18})\s*-\s*(\d{0,18})\s*")


def download(request: Request, store: BlobStore, sha256: str, name: str) -> Response:
    """The blob as an attachment; its hash is its ETag. Raises ``not-found`` and ``range-not-satisfiable``."""
    tag = f'"{sha256}"'
    if (same := not_modified(request, tag)) is not None:
        return same
    path = store.path(sha256)
    try:
        facts = path.stat()
    except FileNotFoundError as error:
        raise not_found("blob", sha256) from error
    _check_range(request.headers.get("range"), facts.st_size)
    return FileResponse(
        path,
        # Never what the name suggests: a job's HTML must not run in the dashboard's origin.
        media_type="application/octet-stream",
        filename=posixpath.basename(name),
        stat_result=facts,
        headers={"ETag": tag},
    )


def _check_range(header: str | None, size: int) -> None:
    if header is None:
        return
    match = _RANGE.fullmatch(header)
    parts = [_PART.fullmatch(part) for part in match.group(1).split(",")] if match else [None]
    for part in parts:
        if part is None or not any(part.groups()):
            raise ProblemError(
                "invalid-request",
                TranslatableText(
                    "range-form", "Range {header!r} is not of the form bytes=first-last.", header=header[:80]
                ),
            )
        first, last = part.groups()
        start = int(first) if first else size - int(last)
        if start >= size or (first and last and int(last) < start):
            raise HttpProblemError(
                "range-not-satisfiable",
                TranslatableText("range-outside", "The file has {size} bytes: ask for some of them.", size=size),
                headers={"Content-Range": f"bytes */{size}"},
            )
