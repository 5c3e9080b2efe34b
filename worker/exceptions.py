"""Errors of the worker; every message names the mend.

WorkerError
├── UnusableError (the attempt cannot be prepared; the message goes to the job's owner)
│   ├── CodeError
│   ├── RestoreError
│   ├── PythonError
│   ├── IdentityError
│   ├── DeviceGoneError
│   ├── NetworkError
│   └── SecretsError
├── StoppedError
├── UnwantedError
├── MissingBlobError
├── UnavailableError
└── RequestRefusedError
    └── OutOfStepError
"""

from typing import Any


class WorkerError(Exception):
    """The worker could not do what was asked: its log says why."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class MissingBlobError(WorkerError):
    """The artifact store no longer holds a file of this job: submit the job again, with its code."""


class UnusableError(WorkerError):
    """The attempt cannot be started on this node."""


class CodeError(UnusableError):
    """The code of the job cannot be laid out: submit it again with `yard submit`."""


class RestoreError(UnusableError):
    """The checkpoint to resume from is damaged: rerun the job from an older one, or from the start."""


class PythonError(UnusableError):
    """There is no such Python here: give `python:` an interpreter, a venv or a conda prefix that exists on the node."""


class IdentityError(UnusableError):
    """The worker may not run this user's jobs: run it as root, or as one trust domain."""


class DeviceGoneError(UnusableError):
    """A GPU of this attempt is no longer on the node: see `yard nodes`, and rerun the job."""


class NetworkError(UnusableError):
    """Other nodes cannot reach this one, which has no IPv4 address: give it a network."""


class SecretsError(UnusableError):
    """The secrets that the job names cannot be had: see `yard secrets ls`, and rerun the job."""


class StoppedError(WorkerError):
    """Stopped before it started."""


class UnwantedError(WorkerError):
    """The service no longer wants the attempt started here."""


class UnavailableError(WorkerError):
    """The service does not answer now: the worker keeps everything on disk and tries again."""


class RequestRefusedError(WorkerError):
    """The service answered and said no; `status` is the HTTP status, `problem` its problem+json body."""

    def __init__(self, status: int, problem: dict[str, Any], request: str) -> None:
        self.detail = str(problem.get("detail") or problem.get("title") or "no reason given")
        super().__init__(f"{request} was refused with {status}: {self.detail}")
        self.status = status
        self.problem = problem


class OutOfStepError(RequestRefusedError):
    """A batch started beyond what the service has; `offset` is where to go on."""

    def __init__(self, offset: int, problem: dict[str, Any], request: str) -> None:
        super().__init__(409, problem, request)
        self.offset = offset
