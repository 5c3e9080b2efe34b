"""A client's connection to a handler of requests, over a real socket."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from torchyard.client.connection import Connection


@contextmanager
def connected(handler: type[BaseHTTPRequestHandler]) -> Iterator[Connection]:
    """Serve requests by a handler, and yield a connection to it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    connection = Connection(f"http://127.0.0.1:{server.server_port}", "token")
    try:
        yield connection
    finally:
        connection.close()
        server.shutdown()
        thread.join()
        server.server_close()
