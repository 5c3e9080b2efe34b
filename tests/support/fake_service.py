"""The other end of the agent protocol, in memory, on a real socket; it can be away, slow, forgetful or wrong."""

import asyncio
import hashlib
import socket
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from tests.support.wait import until
from torchyard import wire
from torchyard.ids import new_id
from torchyard.network import ports
from torchyard.spec import JobSpec

TOKEN = "node-token"


class FakeService:
    """What the service would know. Marks, hashes and claims are checked as the real one does."""

    def __init__(self, broker_url: str = "redis://127.0.0.1:1/0", prefix: str = "torchyard:test:") -> None:
        self.broker_url = broker_url
        self.prefix = prefix
        self.heartbeat_s = 0.3
        self.inbox = ""
        self.inbox_probe = ""
        self.disk_floor: int | None = None
        self.beat = 0
        self.launches: dict[str, wire.Launch] = {}
        self.assigned: list[str] = []
        self.orders: dict[str, wire.AttemptOrder] = {}
        self.forget: list[str] = []
        self.nonces: dict[str, str] = {}
        #: Claims are answered without the launch, as by the version before.
        self.claims_alone = False
        self.registered: list[wire.Register] = []
        self.heartbeats: list[wire.Heartbeat] = []
        self.running: dict[str, int] = {}
        self.starts: dict[str, wire.NodeStart] = {}
        self.results: dict[str, wire.Result] = {}
        self.environments: dict[str, wire.Environment] = {}
        self.settled: list[str] = []
        self.awaited: set[str] = set()
        self.logs: dict[tuple[str, int], bytearray] = defaultdict(bytearray)
        self.dropped: dict[tuple[str, int], int] = {}
        self.marks: dict[tuple[str, str], int] = defaultdict(int)
        self.records: dict[tuple[str, str], list[tuple[int, wire.MetricRecord]]] = defaultdict(list)
        self.skipped: dict[tuple[str, str], int] = defaultdict(int)
        self.checkpoints: dict[tuple[str, str], wire.CheckpointReport] = {}
        self.stored: set[tuple[str, str]] = set()
        self.remove: list[str] = []
        self.outputs: dict[str, list[wire.FileRef]] = {}
        self.written: dict[tuple[str, wire.Root, str], wire.WrittenFile] = {}
        self.deleted: list[tuple[str, wire.Place]] = []
        self.bring: list[wire.BringOrder] = []
        self.discard: list[str] = []
        self.blobs: dict[str, bytes] = {}
        self.samples: list[wire.Sample] = []
        self.requests: list[str] = []
        #: Whether the node is known; a heartbeat of a stranger is refused.
        self.known = False
        #: Answers 503 to everything.
        self.down = False
        #: Each answer is a page, as of a proxy between.
        self.pages = False
        #: Seconds before each answer.
        self.delay = 0.0
        #: Paths whose next request is carried out but not answered, each with how often.
        self.lose_reply: dict[str, int] = {}

    def assign(self, command: list[str], *, user: str = "ada", unix_user: str | None = None, **spec: Any) -> str:
        """A job that is assigned to the node; returns the attempt's id."""
        attempt = new_id("att")
        fields = {"launcher": "none", "resources": {"gpus": 0}, "command": command} | spec
        self.launches[attempt] = wire.Launch(
            attempt=attempt,
            job=new_id("job"),
            number=1,
            spec=JobSpec.model_validate(fields),
            user=user,
            unix_user=unix_user,
            node_rank=0,
            devices=[],
            code=None,
            restore=None,
        )
        return attempt

    def log(self, attempt: str, rank: int = 0) -> bytes:
        return bytes(self.logs[attempt, rank])

    def numbers(self, attempt: str) -> list[int]:
        """Line numbers of all metric records, as they came."""
        return [number for (owner, _), records in self.records.items() if owner == attempt for number, _ in records]

    def append_log(self, attempt: str, rank: int, offset: int, data: bytes) -> int | None:
        """The new mark, or None for bytes that would leave a hole."""
        stored = self.logs[attempt, rank]
        if offset > len(stored):
            return None
        stored += data[len(stored) - offset :]
        return len(stored)

    def add_metrics(self, attempt: str, batch: wire.MetricBatch) -> bool:
        key = attempt, batch.stream
        if batch.offset > self.marks[key]:
            return False
        known = {number for number, _ in self.records[key]}
        if batch.end > self.marks[key]:
            self.records[key] += [entry for entry in batch.records if entry[0] not in known]
            self.skipped[key] += batch.skipped
            self.marks[key] = batch.end
        return True


def _routes(fake: FakeService) -> APIRouter:  # noqa: C901
    router = APIRouter(prefix="/api/v1/agent")

    @router.post("/register")
    def register(message: wire.Register) -> wire.Registered:
        fake.registered.append(message)
        fake.known = True
        return wire.Registered(
            installation="test",
            broker_url=fake.broker_url,
            broker_key_prefix=fake.prefix,
            heartbeat_s=fake.heartbeat_s,
            inbox=fake.inbox,
            inbox_probe=fake.inbox_probe,
            disk_floor=fake.disk_floor,
        )

    @router.post("/heartbeat", response_model=wire.Orders)
    def heartbeat(message: wire.Heartbeat) -> Any:
        if not fake.known:
            return JSONResponse({"title": "Unknown node"}, 404)
        fake.heartbeats.append(message)
        fake.beat += 1
        return wire.Orders(
            assigned=list(fake.assigned),
            orders=list(fake.orders.values()),
            forget=fake.forget,
            bring=fake.bring,
            discard=fake.discard,
            beat=fake.beat,
        )

    @router.post("/samples", status_code=204)
    def samples(message: wire.SampleBatch) -> None:
        fake.samples += message.samples

    @router.get("/attempts/{attempt}", response_model=wire.Launch)
    def launch(attempt: str) -> Any:
        if attempt in fake.results or attempt not in fake.launches:
            return JSONResponse({"title": "Not found"}, 404)
        return fake.launches[attempt]

    @router.post("/attempts/{attempt}/claim")
    def claim(attempt: str, message: wire.Claim) -> Response:
        if attempt in fake.results or attempt not in fake.launches:
            return Response(status_code=404)
        if fake.nonces.setdefault(attempt, message.nonce) != message.nonce:
            return Response(status_code=409)
        if fake.claims_alone:
            return Response(status_code=204)
        return Response(fake.launches[attempt].model_dump_json(), media_type="application/json")

    @router.post("/attempts/{attempt}/running", status_code=204)
    def running(attempt: str, message: wire.Started) -> None:
        fake.running[attempt] = message.started_us
        if message.start is not None:
            fake.starts[attempt] = message.start

    @router.post("/attempts/{attempt}/start", status_code=204)
    def start(attempt: str, message: wire.NodeStart) -> None:
        fake.starts[attempt] = message

    @router.post("/attempts/{attempt}/result", status_code=204)
    def result(attempt: str, message: wire.Result) -> None:
        fake.results[attempt] = message
        fake.assigned = [other for other in fake.assigned if other != attempt]

    @router.post("/attempts/{attempt}/environment")
    def environment(attempt: str, report: wire.EnvironmentReport) -> wire.EnvironmentAnswer:
        if report.content is not None:
            assert hashlib.sha256(report.content.encode()).hexdigest() == report.sha256
            fake.environments[attempt] = wire.Environment.model_validate_json(report.content)
        return wire.EnvironmentAnswer(missing=report.content is None)

    @router.post("/attempts/{attempt}/settled", response_model=wire.Settled)
    def settled(attempt: str) -> Any:
        fake.settled.append(attempt)
        # A service of the version before has no more to say than this.
        return wire.Settled(awaited=True) if attempt in fake.awaited else Response(status_code=204)

    @router.post("/attempts/{attempt}/logs")
    async def logs(attempt: str, rank: int, offset: int, dropped: int, request: Request) -> Response:
        data = await request.body()
        assert len(data) <= 2**20
        mark = fake.append_log(attempt, rank, offset, data)
        if mark is None:
            return JSONResponse({"offset": len(fake.logs[attempt, rank])}, 409)
        fake.dropped[attempt, rank] = dropped
        return JSONResponse({"offset": mark})

    @router.post("/attempts/{attempt}/metrics")
    def metrics(attempt: str, batch: wire.MetricBatch) -> Response:
        ok = fake.add_metrics(attempt, batch)
        return JSONResponse({"offset": fake.marks[attempt, batch.stream]}, 200 if ok else 409)

    @router.post("/attempts/{attempt}/checkpoints")
    def checkpoints(attempt: str, report: wire.CheckpointReport) -> wire.CheckpointAnswer:
        fake.checkpoints[attempt, report.name] = report
        hashes = [file.sha256 for file in report.files]
        missing = [sha256 for sha256 in hashes if sha256 is not None and sha256 not in fake.blobs]
        if None not in hashes and not missing:
            fake.stored.add((attempt, report.name))
        return wire.CheckpointAnswer(checkpoint=report.name, missing=missing, remove=fake.remove)

    @router.post("/attempts/{attempt}/outputs")
    def outputs(attempt: str, report: wire.OutputReport) -> wire.Missing:
        fake.outputs[attempt] = report.files or fake.outputs.get(attempt, [])
        fake.written.update({(attempt, file.root, file.path): file for file in report.written})
        fake.deleted += [(attempt, place) for place in report.deleted]
        stored = [*report.files, *(file for file in report.written if not file.on_node)]
        return wire.Missing(missing=sorted({file.sha256 for file in stored} - fake.blobs.keys()), room=2**40)

    @router.get("/blobs/{sha256}")
    def blob(sha256: str) -> Response:
        return Response(fake.blobs[sha256]) if sha256 in fake.blobs else JSONResponse({"title": "Not found"}, 404)

    @router.put("/blobs/{sha256}", status_code=204)
    async def upload(sha256: str, request: Request) -> None:
        data = await request.body()
        assert hashlib.sha256(data).hexdigest() == sha256
        fake.blobs[sha256] = data

    return router


class Live:
    """A `FakeService` behind uvicorn at a port; `halt` and `resume` take its socket away and bring it back."""

    def __init__(self, fake: FakeService, port: int) -> None:
        self.fake = fake
        self._app = FastAPI()
        self._app.include_router(_routes(fake))
        self._app.middleware("http")(self._fault)
        self._port = port
        self.resume()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def resume(self) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        config = uvicorn.Config(self._app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: self._server.run([listener]), daemon=True)
        self._listener = listener
        self._thread.start()
        until(lambda: self._server.started, what="the fake service")

    def halt(self) -> None:
        self._server.should_exit = True
        self._thread.join(60)
        self._listener.close()

    async def _fault(self, request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
        fake = self.fake
        path = request.url.path
        fake.requests.append(f"{request.method} {path}")
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return JSONResponse({"title": "No valid token"}, 401)
        if fake.down:
            return JSONResponse({"title": "away"}, 503)
        if fake.delay:
            await asyncio.sleep(fake.delay)
        if fake.pages:
            return HTMLResponse("<p>Sign in to this network.</p>")
        answer = await proceed(request)
        word = path.rsplit("/", 1)[-1]
        if fake.lose_reply.get(word, 0) > 0:
            fake.lose_reply[word] -= 1
            return JSONResponse({"title": "the answer was lost"}, 502)
        return answer


@contextmanager
def serve(fake: FakeService) -> Iterator[Live]:
    """Runs it on a free port."""
    with ports.held("127.0.0.1") as port:
        live = Live(fake, port)
        try:
            yield live
        finally:
            live.halt()
