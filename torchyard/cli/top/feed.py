"""The service's answers, asked for once a second beside the screen."""

import threading
import time
from types import TracebackType
from typing import Self

from torchyard.cli.top.snapshot import BoxSnapshot, LogTail, Selection
from torchyard.client.client import Client
from torchyard.client.log_calls import LOG_END
from torchyard.exceptions import NotFoundError, ServiceError, TooManyRequestsError, UnreachableError
from torchyard.states import JOB_HOLDS_GPUS

#: Seconds between two looks; each is five requests at most.
PERIOD_S = 1.0
#: Age in seconds from which a picture is old: the service hangs, or the requests stand in line.
OLD_S = 5.0
#: Jobs of each kind, and lines of the log, that are asked for.
MOST_JOBS, MOST_LINES = 100, 200
#: A service that comes back by itself.
AWAY = (UnreachableError, ServiceError, TooManyRequestsError)


def look(client: Client, choice: Selection) -> BoxSnapshot:
    """The box as it is now; the log is that of the chosen job, if it has started."""
    nodes = client.nodes()
    # The queue first: a job that starts between the two answers is in both, not in neither.
    queue = client.queue(limit=MOST_JOBS)
    jobs = list(client.jobs(limit=MOST_JOBS, state=sorted(JOB_HOLDS_GPUS)))
    seen = BoxSnapshot(at=client.now(), nodes=nodes, jobs=jobs, queue=queue)
    chosen = choice.among(seen.rows).job
    log = _log(client, chosen) if chosen in {job.id for job in jobs} else None
    free = any(not device.holders and device.unusable is None for node in nodes for device in node.devices)
    return BoxSnapshot(at=seen.at, nodes=nodes, jobs=jobs, queue=queue, idle=client.idle() if free else (), log=log)


def _log(client: Client, job: str | None) -> LogTail | None:
    try:
        return LogTail(job=job, data=client.log_tail(job, MOST_LINES, most=LOG_END)[0]) if job else None
    except NotFoundError:
        return None


class Feed:
    """The newest picture, kept up to date by a thread; it owns the client."""

    def __init__(self, client: Client, first: BoxSnapshot) -> None:
        self.snapshot = first
        self.choice = Selection().among(first.rows)
        self._client = client
        self._seen = time.monotonic()
        self._away = False
        self._failure: Exception | None = None
        self._ended = threading.Event()
        # A daemon: leaving does not wait for a request that hangs.
        self._thread = threading.Thread(target=self._run, name="top", daemon=True)

    def __enter__(self) -> Self:
        self._client.connection.patience_s = 0.0  # the next look is the next try
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()

    @property
    def away(self) -> bool:
        """True while the picture is not what is: the service does not answer, or not in time.

        Raises what no waiting mends, such as a token that was revoked.
        """
        if self._failure is not None:
            raise self._failure
        return self._away or time.monotonic() - self._seen > OLD_S

    def _run(self) -> None:
        with self._client:
            while self._failure is None and not self._ended.wait(PERIOD_S):
                try:
                    self.snapshot = look(self._client, self.choice)
                    self._seen, self._away = time.monotonic(), False
                except AWAY:
                    self._away = True
                except Exception as error:  # noqa: BLE001  # raised again by the thread that shows
                    self._failure = error
