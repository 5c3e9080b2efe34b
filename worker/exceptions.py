"""What can go wrong on a node. Messages say what to do about it.

WorkerError
├── Unavailable
└── Refused
    └── OutOfStep
"""

from typing import Any


class WorkerError(Exception):
    """Something went wrong on this node; its worker log says more."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").split("\n", 1)[0])


class Unavailable(WorkerError):
    """The service does not answer now; the worker keeps everything on disk and tries again."""


class Refused(WorkerError):
    """The service answered and said no; `status` is the HTTP status, `problem` its problem+json body."""

    def __init__(self, status: int, problem: dict[str, Any], request: str) -> None:
        detail = problem.get("detail") or problem.get("title") or "no reason given"
        super().__init__(f"{request} was refused with {status}: {detail}")
        self.status = status
        self.problem = problem


class OutOfStep(Refused):
    """A batch started beyond what the service has; `offset` is where to go on."""

    def __init__(self, offset: int, problem: dict[str, Any], request: str) -> None:
        super().__init__(409, problem, request)
        self.offset = offset
