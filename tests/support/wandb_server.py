"""What a client of Weights & Biases needs of its server: runs are made, go on, and get points."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class WandbServer:
    """`history` has each run's points, as the client has sent them."""

    url: str
    history: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a user who is signed in at it."""
        return {"WANDB_BASE_URL": self.url, "WANDB_API_KEY": "k" * 40, "WANDB_MODE": "online"}

    def answer(self, operation: str, values: dict[str, Any]) -> dict[str, Any]:
        """The data of a GraphQL answer; without one for what the client can do without."""
        match operation:
            case "Viewer":
                return {"viewer": {"id": "user", "entity": "lab", "username": "user", "teams": {"edges": []}}}
            case "RunResumeStatus" if values["name"] in self.history:
                return {"model": {"id": "project", "name": values["project"], "bucket": self._resumed(values["name"])}}
            case "UpsertBucket":
                new = self.history.setdefault(values["name"], []) == []
                project = {"id": "project", "name": values["project"], "entity": {"id": "lab", "name": "lab"}}
                bucket = {"id": "run", "name": values["name"], "displayName": "run", "config": "{}", "project": project}
                return {"upsertBucket": {"bucket": bucket, "inserted": new}}
            case "CreateRunFiles":
                files = [{"name": name, "uploadUrl": f"{self.url}/upload/{name}"} for name in values["files"]]
                return {"createRunFiles": {"runID": "run", "uploadHeaders": [], "files": files}}
            case _:
                return {}

    def append(self, run: str, sent: dict[str, Any]) -> None:
        """Take the points of a message of a run's stream."""
        lines = sent.get("files", {}).get("wandb-history.jsonl", {}).get("content", [])
        self.history.setdefault(run, []).extend(json.loads(line) for line in lines)

    def _resumed(self, run: str) -> dict[str, Any]:
        lines = self.history[run]
        tail = json.dumps([json.dumps(lines[-1])] if lines else [])
        ends = {
            "historyTail": tail,
            "summaryMetrics": "{}",
            "eventsTail": "[]",
            "config": "{}",
            "wandbConfig": json.dumps({"t": 1}),
        }
        counts = {"historyLineCount": len(lines), "eventsLineCount": 0, "logLineCount": 0}
        return {"id": "run", "name": run, "displayName": "run", "tags": []} | ends | counts


@contextmanager
def serve() -> Iterator[WandbServer]:
    """Serve at a free port of the loopback, until the end of the `with`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as listener:
        server = WandbServer(f"http://127.0.0.1:{listener.server_port}")
        listener.RequestHandlerClass = partial(_Handler, server)
        thread = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, wandb: WandbServer, *connection: Any) -> None:
        self._wandb = wandb
        super().__init__(*connection)

    def handle(self) -> None:
        with suppress(ConnectionResetError):  # clients leave without a word
            super().handle()

    def do_GET(self) -> None:
        self._send({})

    def do_PUT(self) -> None:
        self._body()
        self._send({})

    def do_POST(self) -> None:
        body = self._body()
        if self.path == "/graphql":
            asked = json.loads(body)
            self._send({"data": self._wandb.answer(asked["operationName"], asked.get("variables") or {})})
            return
        if self.path.endswith("/file_stream"):
            self._wandb.append(self.path.split("/")[-2], json.loads(body))
        self._send({})

    def _body(self) -> bytes:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw

    def _send(self, answer: object) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Requests are no news."""
