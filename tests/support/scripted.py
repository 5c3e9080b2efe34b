"""A node that does what a test says: the agent's requests over real HTTP, without processes or GPUs."""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from tests.support.live import Live, connect
from tests.support.wait import until
from torchyard import home, wire
from torchyard.ids import now_us

GIB = 2**30
#: Bytes of a metrics line, as far as anybody asks.
LINE = 10


class Attempt:
    """One attempt that the node has started."""

    def __init__(self, agent: "Agent", attempt_id: str) -> None:
        self.id = attempt_id
        self.started_us = now_us()
        self._agent = agent
        self._lines: dict[int, int] = {}
        self._log: dict[int, int] = {}

    def report(
        self, steps: Sequence[int], *, total_steps: int | None = None, lost: int = 0, rank: int = 0, **values: Any
    ) -> None:
        """Metric lines of a rank, one a step, and records that got `lost`; a value may be a function of the step. Names
        have ``__`` for a slash.
        """
        named = {name.replace("__", "/"): value for name, value in values.items()}
        start = self._lines.get(rank, 0)
        records = [
            (
                start + n,
                wire.MetricRecord(step=step, time_us=now_us(), values=_at(named, step), total_steps=total_steps),
            )
            for n, step in enumerate(steps)
        ]
        end = self._lines[rank] = start + len(records)
        batch = wire.MetricBatch(
            node_rank=0,
            stream=f"rank-{rank}",
            rank=rank,
            offset=LINE * start,
            end=LINE * end,
            records=records,
            taken=end + lost,
        )
        self._post("metrics", batch)

    def write(self, text: str, *, rank: int = 0) -> None:
        """Bytes at the end of a rank's log."""
        offset = self._log.get(rank, 0)
        data = text.encode()
        self._agent.send("POST", f"attempts/{self.id}/logs?rank={rank}&offset={offset}", content=data)
        self._log[rank] = offset + len(data)

    def checkpoint(self, step: int, files: Mapping[str, bytes], **metrics: float) -> None:
        """A checkpoint that ends in the artifact store."""
        report = wire.CheckpointReport(
            name=f"step-{step:09d}",
            step=step,
            created_us=now_us(),
            metrics={name.replace("__", "/"): value for name, value in metrics.items()},
            files=[wire.CheckpointFile(path=path, size=len(data), sha256=_hash(data)) for path, data in files.items()],
        )
        self._post("checkpoints", report)
        for data in files.values():
            self._agent.send("PUT", f"blobs/{_hash(data)}", content=data)
        self._post("checkpoints", report)

    def output(self, files: Mapping[str, bytes]) -> None:
        """Files in the output folder."""
        refs = [wire.FileRef(path=path, size=len(data), sha256=_hash(data)) for path, data in files.items()]
        self.written(wire.OutputReport(files=refs), *files.values())

    def written(self, report: wire.OutputReport, *contents: bytes) -> None:
        """What the job has written on the node, and the contents of what is to be stored of it."""
        self._post("outputs", report)
        for data in contents:
            self._agent.send("PUT", f"blobs/{_hash(data)}", content=data)
        self._post("outputs", report)

    def note(self, kind: wire.NoteKind, text: str, *parts: wire.Clause, step: int = 0) -> None:
        """What the in-job part has to tell the owner."""
        self._post("notes", wire.JobNotes(notes=[wire.JobNote(kind=kind, text=text, step=step, parts=list(parts))]))

    def environment(self, environment: wire.Environment) -> None:
        """What is installed for it."""
        content = environment.model_dump_json()
        self._post("environment", wire.EnvironmentReport(sha256=_hash(content.encode()), content=content))

    def end(self, **result: Any) -> None:
        """The attempt's result; by default exit code 0."""
        fields = {"kind": wire.ResultKind.EXITED, "started_us": self.started_us, "ended_us": now_us(), **result}
        if not fields.keys() & {"exit_code", "signal"}:
            fields["exit_code"] = 0
        self._agent.attempts.pop(self.id)
        self._post("result", wire.Result(**fields))
        self._agent.send("POST", f"attempts/{self.id}/settled")

    def _post(self, what: str, message: wire.Message) -> None:
        self._agent.send("POST", f"attempts/{self.id}/{what}", content=message.model_dump_json().encode())


class Agent:
    """The node that belongs to the installation's own node token."""

    def __init__(self, http: httpx.Client, devices: int, kind: wire.DeviceKind) -> None:
        self.attempts: dict[str, Attempt] = {}
        #: What the next heartbeat tells of processes that have no business here.
        self.offenders: list[str] = []
        self.offender_findings: list[wire.Finding] = []
        self._http = http
        self._beat: int | None = None
        self._identity = wire.Identity(node_id="n", home_id="h", boot_id="b", pid_namespace="p")
        self._devices = [
            wire.Device(uuid=f"GPU-{n}", index=n, kind=kind, name="NVIDIA H100 80GB HBM3", memory=80 * GIB)
            if kind is wire.DeviceKind.GPU
            else wire.Device(uuid=f"n/cpu{n}", index=n, kind=kind, name="8 cores", memory=0)
            for n in range(devices)
        ]

    def send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """A request of the agent's; what is refused fails the test."""
        answer = self._http.request(method, f"/api/v1/agent/{path}", **arguments)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer

    def register(self, **changes: Any) -> None:
        message = wire.Register(
            node=home.node_name(),
            identity=self._identity,
            version="0.1.0",
            hostname="kiln.example",
            devices=self._devices,
            cpus=32,
            memory=256 * GIB,
            runs_as_root=False,
            capabilities=[each for each in wire.Capability if each is not wire.Capability.UNIX_ACCOUNTS],
        ).model_copy(update=changes)
        self.send("POST", "register", content=message.model_dump_json())
        self.orders()

    def lose(self, index: int, finding: wire.Finding) -> None:
        """A device that a fault takes out of use, from the next heartbeat on."""
        self._devices[index] = self._devices[index].with_fault(finding)

    def orders(self) -> wire.Orders:
        """One heartbeat."""
        held = [
            wire.AttemptReport(attempt=one.id, phase=wire.Phase.RUNNING, started_us=one.started_us)
            for one in self.attempts.values()
        ]
        message = wire.Heartbeat(
            identity=self._identity,
            devices=self._devices,
            attempts=held,
            disk_free=900 * GIB,
            beat=self._beat,
            offenders=[*self.offenders, *(each.message for each in self.offender_findings)],
            offender_findings=self.offender_findings,
        )
        answer = self.send("POST", "heartbeat", content=message.model_dump_json())
        orders = wire.Orders.model_validate_json(answer.content)
        self._beat = orders.beat
        return orders

    def start(self) -> Attempt:
        """Claims and starts the next attempt that is assigned to this node."""
        attempt_id = until(lambda: next((one for one in self.orders().assigned if one not in self.attempts), None))
        assert attempt_id is not None
        self.send("POST", f"attempts/{attempt_id}/claim", content=wire.Claim(nonce=attempt_id).model_dump_json())
        attempt = self.attempts[attempt_id] = Attempt(self, attempt_id)
        started = wire.Started(started_us=attempt.started_us)
        self.send("POST", f"attempts/{attempt_id}/running", content=started.model_dump_json())
        return attempt

    def ordered(self, action: wire.Action) -> wire.AttemptOrder:
        """The next order of a kind."""
        found = until(lambda: next((one for one in self.orders().orders if one.action is action), None))
        assert found is not None
        return found

    def sample(self, values: Mapping[str, float], attempt: Attempt | None = None, *, ago_s: float = 0) -> None:
        """One moment of telemetry."""
        moment = int((time.time() - ago_s) * 1_000_000)
        sample = wire.Sample(time_us=moment, attempt=attempt and attempt.id, values=dict(values))
        self.send("POST", "samples", content=wire.SampleBatch(samples=[sample]).model_dump_json())


def _at(values: Mapping[str, Any], step: int) -> dict[str, Any]:
    return {name: value(step) if callable(value) else value for name, value in values.items()}


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def agent(live: Live, devices: int = 4, kind: wire.DeviceKind = wire.DeviceKind.GPU) -> Iterator[Agent]:
    """The node of a running service, registered."""
    with connected(live.url, live.node_token, devices, kind) as made:
        yield made


@contextmanager
def connected(url: str, token: str, devices: int = 4, kind: wire.DeviceKind = wire.DeviceKind.GPU) -> Iterator[Agent]:
    """The node whose token it is, registered with the service at an address."""
    with connect(url, token) as http:
        http.headers[wire.PROTOCOL_HEADER] = str(wire.PROTOCOL)
        http.headers["Content-Type"] = "application/json"
        made = Agent(http, devices, kind)
        made.register()
        yield made
