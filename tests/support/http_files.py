"""A real HTTP server for a few files, which counts what is asked of it."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Files:
    """What the server holds and what it was asked for."""

    contents: dict[str, bytes] = field(default_factory=dict)
    #: Bytes after which the connection is cut, once for each name.
    cut: dict[str, int] = field(default_factory=dict)
    #: Names that answer 500.
    broken: set[str] = field(default_factory=set)
    #: Each request: name and the first byte asked for.
    requests: list[tuple[str, int]] = field(default_factory=list)
    address: str = ""

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


@contextmanager
def served() -> Iterator[Files]:
    files = Files()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(files))
    files.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield files
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(files: Files) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/")
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-"))
            assert asked
            start = int(asked[1])
            files.requests.append((name, start))
            content = files.contents.get(name)
            if name in files.broken or content is None:
                self.send_error(500 if name in files.broken else 404)
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            self.wfile.write(content[start : start + files.cut.pop(name, len(content))])
            self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    return Handler
