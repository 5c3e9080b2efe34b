"""A collector gets the start of each attempt once; one that is away holds up nobody."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from typing import Any

import pytest

from tests.support import otlp
from tests.support.live import Live
from tests.support.plane import Plane
from tests.support.plane import plane as connected
from tests.support.wait import until
from torchyard import wire
from torchyard.ids import now_us

#: What a trace says of an attempt; nothing of its command, environment or secrets.
TOLD = {f"torchyard.{key}" for key in ("job", "job_id", "attempt", "user", "project", "node", "launcher", "warm")}
Serve = Callable[..., AbstractContextManager[Live]]


class Collector:
    """An OTLP receiver over HTTP."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, otlp.Trace]] = []
        self.status = 200
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append((self.path, otlp.decoded(body)))
                self.send_response(collector.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def serving(self) -> Iterator["Collector"]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def names(self) -> list[list[str]]:
        return [[span.name for span in trace.spans] for _, trace in self.requests]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector().serving() as made:
        yield made


def told(*marks: str) -> wire.NodeStart:
    known = {wire.StartMark(name): 1000 * place for place, name in enumerate(marks)}
    return wire.NodeStart(heard_us=now_us(), marks=known, warm=False)


def ended(**fields: Any) -> wire.Result:
    return wire.Result(kind=wire.ResultKind.EXITED, exit_code=0, started_us=5, ended_us=6, **fields)


def test_a_start_is_sent_once_when_its_first_step_is_known_or_it_has_ended(serve: Serve, collector: Collector) -> None:
    with serve(otlp_endpoint=collector.url) as live, connected(live) as plane:
        stepping, short = plane.job(state="starting"), plane.job(state="starting")
        send(plane, stepping, "running", wire.Started(started_us=now_us(), start=told("started")))
        send(plane, stepping, "start", told("started", "torch", "stepped"))
        until(lambda: collector.requests, what="the spans")
        send(plane, stepping, "result", ended(start=told("started", "torch", "joined", "stepped")))
        send(plane, short, "result", ended(start=told("started")))
        until(lambda: len(collector.requests) == 2, what="the spans of the other")
        assert [names[-1] for names in collector.names()] == ["first step", "fork"]
        assert {path for path, _ in collector.requests} == {"/v1/traces"}
        (_, trace), _ = collector.requests
        assert trace.resource == {"service.name": "torchyard", "service.version": version("torchyard")}
        root, *stages = trace.spans
        said = otlp.attributes(root)
        assert said["torchyard.job_id"] == stepping.job
        assert (said["torchyard.attempt"], said["torchyard.warm"]) == (1, False)
        assert said.keys() == TOLD
        assert all(stage.parent_span_id == root.span_id and not stage.attributes for stage in stages)


def test_a_collector_that_refuses_is_passed_over(serve: Serve, collector: Collector) -> None:
    collector.status = 500
    with serve(otlp_endpoint=collector.url) as live, connected(live) as plane:
        first, second = plane.job(state="starting"), plane.job(state="starting")
        send(plane, first, "result", ended(start=told("started")))
        until(lambda: collector.requests, what="the spans")
        collector.status = 200
        send(plane, second, "result", ended(start=told("started")))
        until(lambda: len(collector.requests) == 2, what="the spans of the other")


def send(plane: Plane, seeded: Any, what: str, message: wire.Message) -> None:
    assert plane.post(seeded, what, message).status_code == 204
