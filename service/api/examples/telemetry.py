"""Metrics, logs and streams."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from service.api.examples.jobs import JOB_ID
from torchyard import api

_LOG = "epoch 1/90 loss 2.31\nepoch 2/90 loss 1.87\n"
#: Answers without a model.
TEXTS: Mapping[str, Mapping[str, Any]] = {
    "logs_raw": {"text/plain": _LOG},
    "logs_file": {"text/plain": _LOG},
    "logs_stream": {
        "text/event-stream": "id: 1:21\n"
        'data: {"attempt": 1, "offset": 0, "next": 21, "text": "epoch 1/90 loss 2.31\\n"}\n\n'
    },
    "logs_changes": {"text/event-stream": f'event: job\ndata: {{"id": "{JOB_ID}", "version": 7}}\n\n'},
    "live_open_stream": {"text/event-stream": 'event: open\ndata: {"stream": "b2f1"}\n\nevent: nodes\ndata: {}\n\n'},
    "health_healthz": {"application/json": {"status": "ok"}},
    "health_readyz": {"application/json": {"status": "ready"}},
    "health_prometheus": {
        "text/plain": "# HELP torchyard_jobs Jobs by state.\n"
        "# TYPE torchyard_jobs gauge\n"
        'torchyard_jobs{state="running"} 2.0\n'
    },
}
MODELS: tuple[BaseModel, ...] = (
    api.Metrics(
        series=[api.Series(name="train/loss", rank=0, points=[(1, 1_795_683_720.0, 2.31), (2, 1_795_683_721.5, 1.87)])],
        cursor="1.2",
        reset=True,
    ),
    api.Curves(
        width=100.0,
        rough=False,
        curves=[
            api.Curve(
                job=JOB_ID,
                name="train/loss",
                number=[0, 1],
                count=[100, 100],
                min=[1.62, 0.98],
                mean=[1.94, 1.21],
                max=[2.31, 1.66],
                special=[],
                last=1.02,
            )
        ],
    ),
    api.Extremes(extremes=[api.Extreme(job=JOB_ID, name="train/loss", min=0.98, max=2.31)]),
    api.LogStream(attempt=1, rank=0, size=65_536, dropped_bytes=0),
    api.LogIndex(attempt=1, size=42, lines=2, blocks=[api.LogBlock(offset=0, line=0, time=1_795_683_720.0)]),
    api.LogSearch(
        attempt=1,
        count=1,
        matches=[
            api.LogMatch(line=1, offset=21, text="epoch 2/90 loss 1.87", before=["epoch 1/90 loss 2.31"], after=[])
        ],
        next=None,
        line=2,
        line_offset=42,
    ),
    api.LiveTopics(topics=["queue", f"job:{JOB_ID}"]),
)
