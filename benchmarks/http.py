"""A bare HTTP/1.1 client on one socket: cheap enough that the server is what is measured."""

import json
import socket
from typing import Any


class KeepAliveConnection:
    """One keep-alive connection with a bearer token."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._socket = socket.create_connection((host, port), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"Host: {host}:{port}\r\nAuthorization: Bearer {token}\r\nTorchYard-Protocol: 1\r\n"
        self._buffer = b""

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers with lower-case names, and body."""
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        kind = "Content-Type: application/json\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}{kind}{extra}Content-Length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)
        return self._answer()

    def json(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """The answer's JSON; RuntimeError for anything but success."""
        status, _, answer = self.request(method, path, b"" if body is None else json.dumps(body).encode())
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer.decode(errors='replace')}")
        return dict(json.loads(answer)) if answer else {}

    def _answer(self) -> tuple[int, dict[str, str], bytes]:
        head, _, rest = self._until(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        status, length = int(lines[0].split()[1]), int(headers.get("content-length", 0))
        while len(rest) < length:
            rest += self._more()
        self._buffer = rest[length:]
        return status, headers, rest[:length]

    def _until(self, mark: bytes) -> tuple[bytes, bytes, bytes]:
        data = self._buffer
        while mark not in data:
            data += self._more()
        return data.partition(mark)

    def _more(self) -> bytes:
        data = self._socket.recv(65536)
        if not data:
            raise RuntimeError("the service closed the connection")
        return data
