"""The best evaluation so far, by the metric that the job's `checkpoint.keep_best` names."""

import math
from collections.abc import Mapping
from typing import Any

from torchyard.injob import layout


class BestScore:
    """Score that decides which evaluations are worth a checkpoint, whatever `checkpoint_every` says of their epochs."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._mode, _, self._metric = environment.get(layout.KEEP_BEST, "").partition(" ")
        # A job that starts from another one's checkpoint has a best of its own.
        self._of = [environment.get(layout.JOB_ID, ""), self._mode, self._metric]
        #: For checkpoints: plain data that is changed in place.
        self.state: dict[str, Any] = {"of": self._of, "value": None}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from the `state` of a checkpoint of this job."""
        if saved.get("of") == self._of:
            self.state["value"] = saved["value"]

    def lacks(self, scores: Mapping[str, float]) -> bool:
        """True if there is a metric to judge by, and an evaluation does not have it."""
        return bool(self._metric) and bool(scores) and self._metric not in scores

    def improved(self, scores: Mapping[str, float]) -> bool:
        """Take an evaluation's scores in; returns True if they are better than all before."""
        value = scores.get(self._metric)
        if value is None or not math.isfinite(value):
            return False
        before = self.state["value"]
        if before is not None and (value <= before if self._mode == "max" else value >= before):
            return False
        self.state["value"] = value
        return True
