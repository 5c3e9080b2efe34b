"""Exceptions of the client, the `yard` command and the embedded stack; every message names the mend.

TorchYardError
├── NotRunningError
├── NoTokenError
├── UnreachableError
├── RefusedError (the service's problem+json)
│   ├── InvalidRequestError
│   │   └── NeverFitsError
│   ├── UnauthorizedError
│   ├── ForbiddenError
│   ├── NotFoundError
│   ├── ConflictError
│   │   └── NotAcceptableStateError
│   ├── PayloadTooLargeError
│   ├── TooManyRequestsError
│   └── ServiceError
├── DamagedDownloadError
├── JoinError
├── SpecError
├── PolicyError
├── SnapshotError
├── MissingExtraError
└── StackError
    ├── NetworkHomeError
    ├── NoRedisError
    ├── AlreadyRunningError
    ├── PortTakenError
    ├── InstallError
    └── StartError

SpecWarning (a UserWarning)
"""

from typing import TYPE_CHECKING

from torchyard import home

if TYPE_CHECKING:
    from torchyard.api import Problem


class TorchYardError(Exception):
    """TorchYard could not do what was asked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join((self.__doc__ or "").split()))


class NotRunningError(TorchYardError):
    """TorchYard is not running here: start it with `yard up`, or set TORCHYARD_URL and TORCHYARD_TOKEN."""

    @classmethod
    def here(cls) -> "NotRunningError":
        """Return the one that names what starts the service of this home."""
        return cls(str(cls()).replace("yard up", home.start_command()))


class NoTokenError(TorchYardError):
    """There is no token: run `yard login` on the service's machine, if it signs in by UNIX account.

    Or set TORCHYARD_TOKEN to one that an administrator made with `yard token create`.
    """


class UnreachableError(TorchYardError):
    """The service does not answer: see whether it runs, and TORCHYARD_URL."""


class DamagedDownloadError(TorchYardError):
    """A download does not match its SHA-256: pull it again."""


class JoinError(TorchYardError):
    """The machine may not join as a node: ask an administrator for an invitation (`yard nodes --invite NODE`)."""


class SpecError(TorchYardError):
    """The job spec is wrong: mend the named fields."""


class SpecWarning(UserWarning):
    """The job is submitted, but its owner may not get what they want: see what is said of its command."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class PolicyError(TorchYardError):
    """The policy is wrong: mend the named fields."""


class SnapshotError(TorchYardError):
    """The code folder cannot be uploaded."""


class MissingExtraError(TorchYardError):
    """A part of TorchYard is not installed here: pip install 'torchyard[box]'."""


class StackError(TorchYardError):
    """The embedded stack cannot be started."""


class NetworkHomeError(StackError):
    """TORCHYARD_HOME lies on a network file system: set it to a folder on a local disk."""


class NoRedisError(StackError):
    """No redis-server here: install one (apt-get install redis-server), or set TORCHYARD_REDIS_URL."""


class AlreadyRunningError(StackError):
    """A stack is already running in this TORCHYARD_HOME: use it, or end it with `yard down`."""


class InstallError(StackError):
    """The box could not be installed."""


class PortTakenError(StackError):
    """The port is taken: choose another with --port, or let `--port 0` find one."""


class StartError(StackError):
    """A part of the stack did not come up: read its log."""


#: How a service says that it knows no such path of its API.
_NO_RESOURCE = "There is no resource '/api/"


class RefusedError(TorchYardError):
    """The service refused the request."""

    def __init__(self, problem: "Problem") -> None:
        self.problem = problem
        detail = problem.detail or problem.title
        if detail.startswith(_NO_RESOURCE):
            detail = f"{detail.rstrip('.')}: the service is older than this program, so upgrade it, or use its version."
        fields = [f"{each.field}: {each.message}" for each in problem.errors if each.message not in detail]
        super().__init__("; ".join([detail, *fields]))


class InvalidRequestError(RefusedError):
    """The request is wrong; the message names the fields."""


class NeverFitsError(InvalidRequestError):
    """No node could ever run this job."""


class UnauthorizedError(RefusedError):
    """The token is not valid: `yard token show` prints the one in use."""


class ForbiddenError(RefusedError):
    """The token's user may not do this."""


class NotFoundError(RefusedError):
    """There is no such thing."""


class ConflictError(RefusedError):
    """Something else changed it first: read it again."""


class NotAcceptableStateError(ConflictError):
    """The job is in a state that does not allow this."""


class PayloadTooLargeError(RefusedError):
    """The body is too large."""


class TooManyRequestsError(RefusedError):
    """Too many requests: wait."""


class ServiceError(RefusedError):
    """The service failed: its log says why."""


_BY_KIND: dict[str, type[RefusedError]] = {
    "never-fits": NeverFitsError,
    "not-acceptable-state": NotAcceptableStateError,
}
_BY_STATUS: dict[int, type[RefusedError]] = {
    400: InvalidRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    413: PayloadTooLargeError,
    422: InvalidRequestError,
    428: ConflictError,
    429: TooManyRequestsError,
}


def from_problem(problem: "Problem") -> RefusedError:
    """The exception for a problem, by its kind, else by its status."""
    kind = problem.type.rpartition("/")[2]
    default = ServiceError if problem.status >= 500 else RefusedError
    return _BY_KIND.get(kind, _BY_STATUS.get(problem.status, default))(problem)
