"""Starts of attempts as OpenTelemetry spans, sent to a collector by OTLP over HTTP in its JSON encoding.

One trace an attempt: a span for the whole start, and one below it for each stage. It is sent once, when the first step
is known or the attempt has ended; what a collector does not take is dropped, and counted.
"""

import hashlib
import logging
import queue
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

import httpx
from sqlalchemy import select

from service.attempts import starts
from service.db.engine import Database
from service.db.models import Attempt, Job
from service.infra.times import microseconds
from torchyard import api
from torchyard.api import StartStageName
from torchyard.ids import AttemptId

#: Attempts that may wait for the collector, and those that are remembered as sent.
MAX_WAITING, REMEMBERED = 1_000, 10_000
TIMEOUT_S: Final = 5.0
_LAST: Final = frozenset({StartStageName.FIRST_STEP, StartStageName.FIRST_REPORT})
#: OTLP's numbers for kinds of spans.
_INTERNAL: Final = 1

_log = logging.getLogger(__name__)


class SpanExporter:
    """Sends the start of each attempt that it is told of to ``<endpoint>/v1/traces``, from a thread of its own."""

    def __init__(self, endpoint: str, db: Database) -> None:
        self.sent = 0
        self.dropped = 0
        self._url = f"{endpoint.rstrip('/')}/v1/traces"
        self._db = db
        self._waiting: queue.Queue[AttemptId | None] = queue.Queue(MAX_WAITING)
        self._done: dict[AttemptId, None] = {}
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
                if attempt_id not in self._done:
                    self._look(client, attempt_id)

    def _look(self, client: httpx.Client, attempt_id: AttemptId) -> None:
        try:
            message = self._message(attempt_id)
            if message is None:
                return
            client.post(self._url, json=message).raise_for_status()
            self.sent += 1
        except Exception as error:  # noqa: BLE001  whatever the collector does, the thread goes on
            self.dropped += 1
            _log.warning("the collector did not take the start of %s: %s", attempt_id, error)
        self._done[attempt_id] = None
        if len(self._done) > REMEMBERED:
            del self._done[next(iter(self._done))]

    def _message(self, attempt_id: AttemptId) -> dict[str, Any] | None:
        """Return the spans of a start; None as long as more of it is to come."""
        query = (
            select(Job.id, Job.number, Job.project, Attempt.number.label("attempt"), Attempt.ended_us)
            .join(Attempt, Attempt.job_id == Job.id)
            .where(Attempt.id == attempt_id)
        )
        with self._db.read() as tx:
            row = tx.execute(query).one()
            start = next(each for each in starts.of_job(tx, row.id) if each.attempt == row.attempt)
        if row.ended_us is None and not any(stage.name in _LAST for stage in start.stages):
            return None
        named = {"torchyard.job": row.number, "torchyard.project": row.project, "torchyard.attempt": row.attempt}
        return message(attempt_id, start, named)


def message(attempt_id: str, start: api.StartTiming, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return a start as an ``ExportTraceServiceRequest``; `named` are attributes of the whole."""
    resource = {"attributes": list(_attributes({"service.name": "torchyard"}))}
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
