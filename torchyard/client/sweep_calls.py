"""The client's calls about sweeps: many jobs as one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from torchyard import api
from torchyard.client.calls import Calls, body_of, part

if TYPE_CHECKING:
    from torchyard.spec import JobSpec

#: Seconds between two looks at a sweep that is waited for.
LOOK_S = 2.0


class SweepCalls(Calls):
    """Part of `torchyard.Client`. Sweeps are named by id or by number."""

    def submit_sweep(
        self,
        spec: JobSpec | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        launcher_reason: str = "",
        analysed: bool = False,
    ) -> api.Group:
        """Submit all jobs of a spec with `sweep`, or none; repeated on a broken connection, and still one sweep.

        Scripts are read as by `submit`, with the same `analysed` and `launcher_reason`.
        """
        body, reason = body_of(spec), launcher_reason
        if not analysed:
            body, found = self._analysed(spec, stacklevel=3)
            reason = reason or found
        return self._submit(api.Group, body, reason, idempotency_key, timeout_s=120)

    def sweep(self, sweep: str, *, metric: str | None = None, mode: Literal["min", "max"] | None = None) -> api.Group:
        """A sweep as it is now, with its best trial by a metric: the one given, or its own."""
        return self._get(api.Group, f"/groups/{part(sweep)}", {"metric": metric, "mode": mode})

    def sweeps(self, *, limit: int | None = None, **filters: str | Sequence[str] | None) -> Iterator[api.Group]:
        """Sweeps, newest first; `filters` are ``state``, ``user``, ``project``, ``tag`` and ``q``."""
        return self._pages(api.Group, "/groups", filters, limit)

    def trials(
        self,
        sweep: str,
        *,
        best_first: bool = False,
        metric: str | None = None,
        mode: Literal["min", "max"] | None = None,
        limit: int | None = None,
    ) -> Iterator[api.Job]:
        """The jobs of a sweep: by their numbers, or those with the best last value of the metric first."""
        asked: dict[str, Any] = {"metric": metric, "mode": mode, "best_first": "true" if best_first else None}
        return self._pages(api.Job, f"/groups/{part(sweep)}/trials", asked, limit)

    def wait_sweep(self, sweep: str, *, timeout_s: float | None = None) -> api.Group:
        """Wait for the end of all trials; raise TimeoutError when some have not ended after `timeout_s`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while (found := self.sweep(sweep)).ended_at is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"sweep {found.number} is not over after {timeout_s} s")
            time.sleep(LOOK_S if deadline is None else max(0.0, min(LOOK_S, deadline - time.monotonic())))
        return found

    def cancel_sweep(self, sweep: str) -> api.Group:
        """Stop all trials: those that wait at once, those that run after they have saved their work."""
        return self._post(api.Group, f"/groups/{part(sweep)}/cancel")

    def hold_sweep(self, sweep: str) -> api.Group:
        """Keep the trials that wait from starting."""
        return self._post(api.Group, f"/groups/{part(sweep)}/hold")

    def release_sweep(self, sweep: str) -> api.Group:
        """Let the trials that are held start."""
        return self._post(api.Group, f"/groups/{part(sweep)}/release")

    def resume_sweep(self, sweep: str) -> api.Group:
        """Let a sweep go on that was paused because its first trials failed alike."""
        return self._post(api.Group, f"/groups/{part(sweep)}/resume")
