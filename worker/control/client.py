"""The node's end of ``/api/v1/agent``: one method a request, over connections that are kept open.

Nothing is tried again here: a caller knows what it can put off. `UnavailableError` says "later", `RequestRefusedError`
says "no".
"""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from torchyard import wire
from torchyard.ids import AttemptId
from worker.exceptions import MissingBlobError, OutOfStepError, RequestRefusedError, SecretsError, UnavailableError

CHUNK: Final = 2**20
#: Bytes a second that a slow disk reads, hashes or brings to rest: the service answers for a whole blob at once.
SLOWEST: Final = 20e6
#: Statuses that pass: the service (or a proxy before it) is overloaded, starting or being upgraded.
PASSING: Final = frozenset({408, 425, 429})

logger = logging.getLogger(__name__)
_Model = TypeVar("_Model", bound=wire.Message)


class ControlPlaneClient:
    """Client of the service for one node; used from many threads.

    `address` and `token` are asked again after a failure, so that a service which comes back on another port, or
    with another token, is found. Both may raise `UnavailableError`.
    """

    def __init__(self, address: Callable[[], str], token: Callable[[], str], *, timeout_s: float = 10.0) -> None:
        self._address = address
        self._token = token
        self._base: str | None = None
        self._secret: str | None = None
        self._timeout_s = timeout_s
        self._client = httpx.Client(
            timeout=self._timeout(0),
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=32, keepalive_expiry=60),
            headers={wire.PROTOCOL_HEADER: str(wire.PROTOCOL), "User-Agent": "torchyard-worker"},
            trust_env=False,
        )

    def _timeout(self, patience_s: float) -> httpx.Timeout:
        usual = self._timeout_s
        return httpx.Timeout(usual, connect=min(5.0, usual), read=usual + patience_s)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def register(self, message: wire.Register) -> wire.Registered:
        return _content(self._post("/register", message), wire.Registered)

    def heartbeat(self, message: wire.Heartbeat) -> wire.Orders:
        return _content(self._post("/heartbeat", message), wire.Orders)

    def samples(self, samples: list[wire.Sample]) -> None:
        self._post("/samples", wire.SampleBatch(samples=samples))

    def launch(self, attempt: AttemptId) -> wire.Launch | None:
        """Return what to launch as it is now; None when the attempt is not this node's to start any more."""
        try:
            return _content(self._request("GET", _attempt(attempt)), wire.Launch)
        except RequestRefusedError as error:
            _pass_unwanted(error)
            return None

    def claim(self, attempt: AttemptId, nonce: str) -> wire.Launch | None:
        """Make the attempt this node's; return what to launch, None when another nonce has it or it is void."""
        try:
            answer = self._post(_attempt(attempt, "claim"), wire.Claim(nonce=nonce))
        except RequestRefusedError as error:
            _pass_unwanted(error)
            return None
        return _content(answer, wire.Launch) if answer.content else self.launch(attempt)

    def secrets(self, attempt: AttemptId, nonce: str) -> dict[str, str]:
        """Return the values of the job's secrets by name; raise SecretsError if they cannot be had."""
        try:
            answer = self._post(_attempt(attempt, "secrets"), wire.Claim(nonce=nonce))
        except RequestRefusedError as error:
            if error.status != 409:
                raise
            raise SecretsError(error.detail) from error
        return _content(answer, wire.Secrets).values

    def prepared(self, attempt: AttemptId, where: wire.Prepared) -> wire.Go | None:
        """Report that this member could start; return whether all could, None when the attempt is void or over."""
        try:
            return _content(self._post(_attempt(attempt, "prepared"), where), wire.Go)
        except RequestRefusedError as error:
            _pass_unwanted(error)
            return None

    def running(self, attempt: AttemptId, started_us: int, start: wire.NodeStart | None = None) -> None:
        self._post(_attempt(attempt, "running"), wire.Started(started_us=started_us, start=start))

    def start(self, attempt: AttemptId, start: wire.NodeStart) -> None:
        """Send what is known of the start by now. A service of the version before does not take it."""
        try:
            self._post(_attempt(attempt, "start"), start)
        except RequestRefusedError as error:
            if error.status not in {404, 405}:
                raise

    def result(self, attempt: AttemptId, result: wire.Result) -> wire.Settled | None:
        """Tell how the attempt ended; return the answer of `settled` where the result settles it, too.

        A service of the version before takes the result alone.
        """
        answer = self._post(_attempt(attempt, "result"), result)
        return _content(answer, wire.Settled) if answer.content else None

    def stacks(self, attempt: AttemptId, dump: wire.StackDump) -> None:
        """Send the stacks of an attempt's processes."""
        self._post(_attempt(attempt, "stacks"), dump)

    def notes(self, attempt: AttemptId, notes: wire.JobNotes) -> None:
        """Send what the in-job library tells the job's owner. A service of the version before does not take it."""
        try:
            self._post(_attempt(attempt, "notes"), notes)
        except RequestRefusedError as error:
            if error.status not in {404, 405}:
                raise

    def environment(self, attempt: AttemptId, told: wire.EnvironmentReport) -> bool:
        """Tell what is installed for the attempt; return whether the service lacks the content.

        A service of the version before does not take it.
        """
        try:
            answer = self._post(_attempt(attempt, "environment"), told)
        except RequestRefusedError as error:
            if error.status not in {404, 405}:
                raise
            return False
        return _content(answer, wire.EnvironmentAnswer).missing

    def settled(self, attempt: AttemptId) -> bool:
        """Everything of the attempt is stored: the node forgets it. Whether the job's next attempt wants its files."""
        answer = self._request("POST", _attempt(attempt, "settled"))
        return bool(answer.content) and _content(answer, wire.Settled).awaited

    def log(self, attempt: AttemptId, rank: int, offset: int, data: bytes, dropped: int) -> int:
        """Send bytes of a rank's log; return the mark. `dropped` counts all bytes that were not kept so far."""
        query = f"?rank={rank}&offset={offset}&dropped={dropped}"
        headers = {"Content-Type": "application/octet-stream"}
        answer = self._request("POST", _attempt(attempt, "logs") + query, content=data, headers=headers)
        return _content(answer, wire.Mark).offset

    def metrics(self, attempt: AttemptId, batch: wire.MetricBatch) -> int:
        """Send metric records; return the mark."""
        return _content(self._post(_attempt(attempt, "metrics"), batch), wire.Mark).offset

    def checkpoint(self, attempt: AttemptId, report: wire.CheckpointReport) -> wire.CheckpointAnswer:
        answer = self._post(_attempt(attempt, "checkpoints"), report)
        return _content(answer, wire.CheckpointAnswer)

    def outputs(self, attempt: AttemptId, report: wire.OutputReport) -> wire.Missing:
        """Report files that the job has written; return the hashes that the store lacks, and its room."""
        return _content(self._post(_attempt(attempt, "outputs"), report), wire.Missing)

    def blob_placed(self, sha256: str, name: str, size: int, *, linked: bool = False) -> None:
        """A file lies in the inbox under `name`; the service takes it over."""
        placed = wire.Placed(placed=name, size=size, linked=linked)
        self._post(f"/blobs/{sha256}", placed, patience_s=size / SLOWEST)

    def upload_blob(self, sha256: str, size: int, content: Iterator[bytes]) -> None:
        """Upload a file, read as the connection takes it; the service checks the hash."""
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        self._request("PUT", f"/blobs/{sha256}", patience_s=size / SLOWEST, content=content, headers=headers)

    def fetch_blob(self, sha256: str, target: Path) -> None:
        """Write a blob of the store to a file, without checking its hash; raise `MissingBlobError`, OSError."""
        try:
            with self._streamed("GET", f"/blobs/{sha256}") as answer, target.open("wb") as file:
                for chunk in answer.iter_bytes(CHUNK):
                    file.write(chunk)
        except httpx.HTTPError as error:
            raise self._unavailable(error) from error
        except RequestRefusedError as error:
            if error.status == 404:
                raise MissingBlobError from error
            raise

    @contextmanager
    def _streamed(self, method: str, path: str) -> Iterator[httpx.Response]:
        answer = self._client.send(self._build(method, path, {}), stream=True)
        try:
            if answer.is_error:
                answer.read()
            self._check(answer)
            yield answer
        finally:
            answer.close()

    def _post(self, path: str, message: wire.Message, *, patience_s: float = 0) -> httpx.Response:
        headers = {"Content-Type": "application/json"}
        data = message.model_dump_json().encode()
        return self._request("POST", path, patience_s=patience_s, content=data, headers=headers)

    def _request(self, method: str, path: str, *, patience_s: float = 0, **arguments: Any) -> httpx.Response:
        """`patience_s`: what the service may take beyond the usual before it answers."""
        request = self._build(method, path, {**arguments, "timeout": self._timeout(patience_s)})
        try:
            answer = self._client.send(request)
        except httpx.HTTPError as error:
            raise self._unavailable(error) from error
        self._check(answer)
        return answer

    def _build(self, method: str, path: str, arguments: dict[str, Any]) -> httpx.Request:
        base = self._base = self._base or self._address().rstrip("/")
        secret = self._secret = self._secret or self._token()
        request = self._client.build_request(method, f"{base}/api/v1/agent{path}", **arguments)
        request.headers["Authorization"] = f"Bearer {secret}"
        return request

    def _unavailable(self, error: httpx.HTTPError) -> UnavailableError:
        self._base = None  # another thread may have forgotten it already
        base = error.request.url.copy_with(raw_path=b"/")
        return UnavailableError(
            f"the service at {base} does not answer ({type(error).__name__}: {error}); trying again"
        )

    def _check(self, answer: httpx.Response) -> None:
        if answer.is_success:
            return
        request = f"{answer.request.method} {answer.request.url.path}"
        if answer.status_code >= 500 or answer.status_code in PASSING:
            raise UnavailableError(f"{request} was answered {answer.status_code}; trying again")
        problem = _problem(answer)
        if answer.status_code == 401:
            self._secret = None
        if answer.status_code == 409 and isinstance(problem.get("offset"), int):
            raise OutOfStepError(problem["offset"], problem, request)
        raise RequestRefusedError(answer.status_code, problem, request)


def _attempt(attempt: AttemptId, *rest: str) -> str:
    return "/".join(["/attempts", quote(attempt, safe=""), *rest])


def _content(answer: httpx.Response, model: type[_Model]) -> _Model:
    """Return what an answer says; `UnavailableError` for one that is none of the service's, as of a proxy's page."""
    try:
        return model.model_validate_json(answer.content)
    except ValidationError as error:
        request = f"{answer.request.method} {answer.request.url.path}"
        raise UnavailableError(
            f"{request} was answered with something else than a {model.__name__}; trying again"
        ) from error


def _pass_unwanted(error: RequestRefusedError) -> None:
    """Pass over those refusals that mean: start something else."""
    if error.status not in {404, 409, 410}:
        raise error
    logger.info("not started: %s", error)


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        body = json.loads(answer.content)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
