"""Calls of the client about logs and metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

import httpx

from torchyard import api
from torchyard.client import log_stream
from torchyard.client.calls import Calls, part

LOG_PIECE = 2**20
#: Bytes of a log's end that are fetched for its last lines, and the most that one answer holds.
LOG_END, LOG_END_MOST = 2**16, 2**22


class LogCalls(Calls):
    """Logs and metrics, as part of `torchyard.Client`."""

    def log_streams(self, job: str) -> list[api.LogStream]:
        """The logs that there are: one per attempt and rank."""
        return list(self._pages(api.LogStream, f"/jobs/{part(job)}/logs/streams", {}))

    def logs(
        self, job: str, *, rank: int = 0, attempt: int | None = None, offset: int = 0, since: datetime | None = None
    ) -> Iterator[bytes]:
        """A rank's log so far, in pieces; rank -1 is the launcher's own.

        With `since`, only what arrived from then on, exact to a few seconds; so in `log_tail` and `follow_logs`.
        """
        while True:
            answer = self._log(job, rank, attempt, since, offset=offset, limit=LOG_PIECE)
            if answer.content:
                yield answer.content
            behind = int(answer.headers["TorchYard-Next-Offset"])
            if behind <= offset or behind >= int(answer.headers["TorchYard-Size"]):
                return
            offset, since = behind, None

    def _log(
        self, job: str, rank: int, attempt: int | None, since: datetime | None, *, offset: int = 0, limit: int = 1
    ) -> httpx.Response:
        begin = since.isoformat() if since else None
        params = {"rank": rank, "attempt": attempt, "offset": offset, "limit": limit, "since": begin}
        return self.connection.request("GET", f"/jobs/{part(job)}/logs", params=params)

    def log_tail(
        self,
        job: str,
        lines: int,
        *,
        rank: int = 0,
        attempt: int | None = None,
        most: int = LOG_END_MOST,
        since: datetime | None = None,
    ) -> tuple[bytes, int]:
        """The last lines of a rank's log so far, and the offset behind them; only its end is fetched.

        They are fewer where they do not fit into `most` bytes; up to LOG_END bytes are one request.
        """
        size = LOG_END
        while True:
            answer = self._log(job, rank, attempt, since, offset=-size, limit=size)
            reach, start = answer.content, int(answer.headers["TorchYard-Offset"])
            if len(reach) < size or reach.rstrip(b"\n").count(b"\n") >= lines or size >= most:
                break
            size *= 4
        kept = re.findall(rb"[^\n]*\n|[^\n]+", reach)
        return b"".join(kept[max(0, len(kept) - lines) :]), start + len(reach)

    def follow_logs(
        self, job: str, *, rank: int = 0, attempt: int | None = None, offset: int = 0, since: datetime | None = None
    ) -> Iterator[log_stream.LogChunk]:
        """A rank's log as it grows, until the attempt has ended and all is here.

        Reconnects where it broke off, also across a restart of the service; raises UnreachableError when that stays
        away for minutes.
        """
        if since is not None:
            now = self._log(job, rank, attempt, since, offset=offset).headers
            attempt, offset = int(now["TorchYard-Attempt"]) or attempt, int(now["TorchYard-Offset"])
        params = {"rank": rank, "attempt": attempt, "offset": offset}
        return log_stream.follow(self.connection, f"/jobs/{part(job)}/logs/stream", params)

    def metrics(
        self,
        job: str,
        *,
        names: Iterable[str] = (),
        max_points: int | None = None,
        all_points: bool = False,
        since: str | None = None,
    ) -> api.Metrics:
        """Metric series; `since` is the `cursor` of an earlier answer, to get only what is newer. A long series is
        thinned to `max_points`, peaks kept, unless all points are wanted.
        """
        params = {
            "names": ",".join(names) or None,
            "max_points": max_points,
            "all_points": all_points or None,
            "since": since,
        }
        return self._get(api.Metrics, f"/jobs/{part(job)}/metrics", params)
