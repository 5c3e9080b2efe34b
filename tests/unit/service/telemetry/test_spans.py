"""Starts in the JSON encoding of OTLP."""

from datetime import UTC, datetime

from service.telemetry import spans
from torchyard.api import StartStage, StartStageName, StartTiming

START = StartTiming(
    attempt=2,
    begun_at=datetime(2026, 1, 1, tzinfo=UTC),
    stages=[
        StartStage(name=StartStageName.REQUEST, at_ms=0, ms=1.5),
        StartStage(name=StartStageName.FIRST_STEP, at_ms=1.5, ms=10),
    ],
    warm=True,
    cold_reason=None,
    preloaded=None,
    clock_skew_ms=None,
    clock_skew_error_ms=None,
)


def test_the_whole_has_a_span_and_each_stage_one_below_it() -> None:
    told = spans.message("att-1", START, {"torchyard.job": 7, "torchyard.project": "default"})
    (scope,) = told["resourceSpans"][0]["scopeSpans"]
    root, request, step = scope["spans"]
    assert (root["name"], request["name"], step["name"]) == ("start", "request", "first step")
    assert (len(root["traceId"]), len(root["spanId"])) == (32, 16)
    assert {each["traceId"] for each in scope["spans"]} == {root["traceId"]}
    assert request["parentSpanId"] == step["parentSpanId"] == root["spanId"]
    assert "parentSpanId" not in root
    assert len({each["spanId"] for each in scope["spans"]}) == 3
    assert root["startTimeUnixNano"] == request["startTimeUnixNano"] == "1767225600000000000"
    assert request["endTimeUnixNano"] == step["startTimeUnixNano"] == "1767225600001500000"
    assert root["endTimeUnixNano"] == step["endTimeUnixNano"] == "1767225600011500000"
    assert root["attributes"] == [
        {"key": "torchyard.warm", "value": {"boolValue": True}},
        {"key": "torchyard.job", "value": {"intValue": "7"}},
        {"key": "torchyard.project", "value": {"stringValue": "default"}},
    ]


def test_it_has_the_same_ids_whenever_it_is_sent() -> None:
    assert spans.message("att-1", START, {}) == spans.message("att-1", START, {})
    first, other = (spans.message(name, START, {})["resourceSpans"][0]["scopeSpans"][0]["spans"] for name in "ab")
    assert first[0]["traceId"] != other[0]["traceId"]
