"""Requests to a collector, decoded by OpenTelemetry's own classes: an unknown field or number fails."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

_IDS = {"traceId", "spanId", "parentSpanId"}


@dataclass(frozen=True)
class Trace:
    """Spans of one resource and scope."""

    resource: dict[str, Any]
    spans: Sequence[Span]


def decoded(body: bytes) -> Trace:
    """Read a request in OTLP's JSON encoding, whose ids are in hexadecimal, where protobuf's has Base64."""
    plain = json.loads(body, object_hook=_with_base64_ids)
    (found,) = json_format.ParseDict(plain, ExportTraceServiceRequest()).resource_spans
    (scope,) = found.scope_spans
    return Trace(resource=attributes(found.resource), spans=scope.spans)


def attributes(owner: Any) -> dict[str, Any]:
    """Return the attributes of a span or resource."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in owner.attributes}


def _with_base64_ids(found: dict[str, Any]) -> dict[str, Any]:
    ids = {key: base64.b64encode(bytes.fromhex(found[key])).decode() for key in _IDS & found.keys()}
    return found | ids
