"""Starts of attempts as OpenTelemetry spans, sent to a collector by OTLP over HTTP in its JSON encoding.

One trace an attempt: a span for the whole start, and one below it for each stage. It is sent once, when the first step
is known or the attempt has ended, by whichever service on the database is first; what a collector does not take is
dropped, and counted.
"""

import hashlib
import logging
import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, Self

import httpx
from sqlalchemy import select

from service.attempts import starts
from service.db.engine import Database
from service.db.models import Attempt, Job, Member, User
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.infra.times import microseconds
from torchyard import api
from torchyard.api import StartStageName
from torchyard.ids import AttemptId, JobId

#: Attempts that may wait for the collector.
MAX_WAITING = 1_000
TIMEOUT_S: Final = 5.0
_LAST: Final = frozenset({StartStageName.FIRST_STEP, StartStageName.FIRST_REPORT})
#: OTLP's numbers for kinds of spans.
_INTERNAL: Final = 1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TracedAttempt(Record):
    """The attributes of an attempt and its job in a trace."""

    job_id: JobId
    job: int
    user: str
    project: str
    attempt: int
    node: str | None
    spec: StoredSpec
    ended_us: int | None

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the whole: names alone, nothing of the command or its environment."""
        launcher = self.spec.launcher
        own = {"job": self.job, "job_id": self.job_id, "attempt": self.attempt, "user": self.user}
        where = {"project": self.project, "node": self.node, "launcher": None if launcher is None else launcher.value}
        return {f"torchyard.{key}": value for key, value in (own | where).items()}


class SpanExporter:
    """Sends the start of each attempt that it is told of to ``<endpoint>/v1/traces``, from a thread of its own."""

    def __init__(self, endpoint: str, db: Database) -> None:
        self.sent = 0
        self.dropped = 0
        self._url = f"{endpoint.rstrip('/')}/v1/traces"
        self._db = db
        self._waiting: queue.Queue[AttemptId | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.put(None)
        self._thread.join(2 * TIMEOUT_S)

    def put(self, attempt_id: AttemptId) -> None:
        """More is known of an attempt's start. Returns at once."""
        try:
            self._waiting.put_nowait(attempt_id)
        except queue.Full:
            self.dropped += 1

    def _run(self) -> None:
        with httpx.Client(timeout=TIMEOUT_S, trust_env=False) as client:
            while (attempt_id := self._waiting.get()) is not None:
                self._look(client, attempt_id)

    def _look(self, client: httpx.Client, attempt_id: AttemptId) -> None:
        try:
            message = self._message(attempt_id)
            if message is None or not self._claim(attempt_id):
                return
            client.post(self._url, json=message).raise_for_status()
            self.sent += 1
        except Exception as error:  # noqa: BLE001  whatever the collector does, the thread goes on
            self.dropped += 1
            _log.warning("the collector did not take the start of %s: %s", attempt_id, error)

    def _claim(self, attempt_id: AttemptId) -> bool:
        """Return whether the trace is this service's to send; it is nobody's a second time."""
        with self._db.write() as tx:
            return starts.claim_trace(tx, attempt_id)

    def _message(self, attempt_id: AttemptId) -> dict[str, Any] | None:
        """Return the spans of a start; None as long as more of it is to come."""
        query = (
            select(
                *TracedAttempt.columns(
                    Attempt,
                    Job.number.label("job"),
                    User.name.label("user"),
                    Job.project.label("project"),
                    Attempt.number.label("attempt"),
                    Member.node.label("node"),
                    Job.spec.label("spec"),
                )
            )
            .join(Job, Job.id == Attempt.job_id)
            .join(User, User.id == Job.user_id)
            .outerjoin(Member, (Member.attempt_id == Attempt.id) & (Member.node_rank == 0))
            .where(Attempt.id == attempt_id)
        )
        with self._db.read() as tx:
            found = TracedAttempt.one(tx.execute(query))
            start = next(each for each in starts.of_job(tx, found.job_id) if each.attempt == found.attempt)
        if found.ended_us is None and not any(stage.name in _LAST for stage in start.stages):
            return None
        return message(attempt_id, start, found.attributes())


def message(attempt_id: str, start: api.StartTiming, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return a start as an ``ExportTraceServiceRequest``; `named` are attributes of the whole."""
    resource = {"attributes": list(_attributes({"service.name": "torchyard", "service.version": version("torchyard")}))}
    spans = list(_spans(attempt_id, start, named))
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "torchyard"}, "spans": spans}]}]}


def _spans(attempt_id: str, start: api.StartTiming, named: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    begun_ns = microseconds(start.begun_at) * 1000
    whole = start.stages[-1].at_ms + start.stages[-1].ms if start.stages else 0.0
    trace, root = _id(attempt_id, 32), _id(f"{attempt_id} start", 16)
    common = {"traceId": trace, "kind": _INTERNAL}
    told = {"torchyard.warm": start.warm, "torchyard.cold_reason": start.cold_reason, **named}
    attributes = list(_attributes(told))
    yield {**common, "spanId": root, "name": "start", **_times(begun_ns, 0, whole), "attributes": attributes}
    for stage in start.stages:
        own = {"spanId": _id(f"{attempt_id} {stage.name}", 16), "parentSpanId": root, "name": stage.name.value}
        yield {**common, **own, **_times(begun_ns, stage.at_ms, stage.ms)}


def _id(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _times(begun_ns: int, at_ms: float, ms: float) -> dict[str, str]:
    begin = begun_ns + round(at_ms * 1e6)
    return {"startTimeUnixNano": str(begin), "endTimeUnixNano": str(begin + round(ms * 1e6))}


def _attributes(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key, value in values.items():
        if isinstance(value, bool):
            yield {"key": key, "value": {"boolValue": value}}
        elif isinstance(value, int):
            yield {"key": key, "value": {"intValue": str(value)}}
        elif value is not None:
            yield {"key": key, "value": {"stringValue": str(value)}}
