"""Metrics that a job logs with a tracker of its own, and the progress that it prints: read from its files into
journals, which are forwarded.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from torchyard.injob import layout
from worker.attempts.folder import AttemptFolder
from worker.forward.metrics import MetricForwarder, MetricSink
from worker.trackers.printed import PrintedProgress
from worker.trackers.translate import Translator

_STREAM: Final = re.compile(r"[a-z]+-rank-(\d{1,6})\.jsonl")


class TrackerForwarder:
    """The trackers of one attempt; `launch` is its launch file, `owner` the user id of the job."""

    def __init__(
        self, sink: MetricSink, folder: AttemptFolder, launch: Mapping[str, Any], *, owner: int, fresh: bool
    ) -> None:
        self._translator = Translator(folder, launch, owner)
        self._printed = PrintedProgress(folder, launch)
        self._metrics = MetricForwarder(
            sink,
            folder.attempt_id,
            folder.path,
            node_rank=launch.get("node_rank", 0),
            owner=os.getuid(),
            fresh=fresh,
            inside=layout.TRACKERS,
            pattern=_STREAM,
        )

    @property
    def skipped(self) -> int:
        """Records that could not be read."""
        return self._translator.skipped + self._metrics.skipped

    @property
    def runs(self) -> dict[str, list[str]] | None:
        """Ids of the runs that the job made, by tracker; None where nobody looked."""
        return self._translator.runs

    def pump(self, *, ended: bool) -> bool:
        """Read and send what has been added, within bounds; True while more is waiting."""
        unread = self._translator.pump(ended=ended)
        self._printed.pump(ended=ended)
        # What is in a journal has been synced. Its end may be torn while the disk is full, never for good.
        unsent = self._metrics.pump(ended=False)
        return unread or unsent
