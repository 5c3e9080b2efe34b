"""One HTTP connection to the service: finds it, retries what is safe to retry, raises problems as exceptions."""

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pydantic

from torchyard import exceptions, home
from torchyard.api import PREFIX, Problem

#: Statuses that a proxy or a restarting service answers.
RETRIED = frozenset({429, 502, 503, 504})
#: Of these, what a proxy answers that has lost the service's own answer.
LOST = frozenset({502, 504})
#: Errors after which the service knows nothing of a request.
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
#: Seconds for which a request that is safe to repeat is repeated: a service restart takes less.
PATIENCE_S = 20.0
#: An answer tells whole seconds, and has travelled: clocks that differ by less are taken for equal.
EQUAL_CLOCKS = timedelta(seconds=5)


def find_url(url: str | None = None) -> str:
    """The service's address.

    The argument, ``TORCHYARD_URL``, where the stack of ``TORCHYARD_HOME`` listens, or where `yard login` signed in.
    """
    found = url or os.environ.get("TORCHYARD_URL") or (home.read_address() or home.read_login() or {}).get("url")
    if not found:
        raise exceptions.NotRunningError.here()
    return str(found).rstrip("/")


def find_token(token: str | None = None, url: str | None = None) -> str:
    """The token for the service at an address, which is found as `find_url` does.

    The argument, ``TORCHYARD_TOKEN``, the administrator's in ``TORCHYARD_HOME``, or that of `yard login`, which goes to
    no other service than the one that gave it.
    """
    found = token or os.environ.get("TORCHYARD_TOKEN")
    if found:
        return found
    try:
        return home.admin_token_file().read_text().strip()
    except OSError:
        login = home.read_login()
        if login is None or login["url"] != find_url(url):
            raise exceptions.NoTokenError from None
        return str(login["token"])


def problem_of(response: httpx.Response) -> Problem:
    """The problem in an answer; whatever else a proxy may have answered becomes one too."""
    try:
        return Problem.model_validate_json(response.content)
    except pydantic.ValidationError:
        text = response.text.strip()[:200] or response.reason_phrase
        return Problem(type="about:blank", title=response.reason_phrase, status=response.status_code, detail=text)


class Connection:
    """Requests below ``/api/v1`` with the token; safe to share between threads."""

    def __init__(self, url: str | None = None, token: str | None = None, *, timeout_s: float = 30.0) -> None:
        self.url = find_url(url)
        self.token = find_token(token, self.url)
        address = httpx.URL(self.url)
        #: The service is on this machine.
        self.is_loopback = address.host in LOOPBACK
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=httpx.Timeout(timeout_s, connect=5.0),
            limits=httpx.Limits(max_connections=None),
            # A proxy of the environment is for other machines, never for this one.
            trust_env=not self.is_loopback,
            # Reading the certificates of all authorities takes longer than most commands: only where one is checked.
            verify=address.scheme == "https",
            event_hooks={"response": [self._note_answer]},
        )
        #: How far the service's clock is ahead of this machine's.
        self._ahead = timedelta()

        #: Told when the service is away or busy and is asked again.
        self.tell: Callable[[str], None] = lambda _message: None
        #: Seconds for which a request that is safe to repeat is repeated, unless it says otherwise.
        self.patience_s = PATIENCE_S
        #: Less of it, until the service has answered for the first time: it may not run at all.
        self.first_patience_s = float("inf")
        self._answered = False

    def now(self) -> datetime:
        """Return the wall clock of the service, as its answers tell it: its times are compared with this."""
        return datetime.now(UTC) + self._ahead

    def _note_answer(self, response: httpx.Response) -> None:
        self._answered = True
        try:
            ahead = parsedate_to_datetime(response.headers["Date"]) - datetime.now(UTC)
        except (KeyError, ValueError, TypeError):
            return  # a proxy's own answer
        self._ahead = ahead if abs(ahead) > EQUAL_CLOCKS else timedelta()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        content: Callable[[], Any] | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        retry: bool = True,
        timeout_s: float | None = None,
        patience_s: float | None = None,
    ) -> httpx.Response:
        """The answer to a request; raises RefusedError for a problem, UnreachableError where nobody answers.

        With `retry` the request is repeated for `patience_s` (the connection's own) when the connection breaks or the
        service says so: give it only for what may happen twice. `content` may be a function that opens the body anew
        for each try.
        """

        def send() -> httpx.Response:
            body = content() if callable(content) else content
            extra: dict[str, Any] = {} if timeout_s is None else {"timeout": timeout_s}
            return self._http.request(
                method, PREFIX + path, params=_given(params), json=json, content=body, headers=headers, **extra
            )

        if not retry:
            return _checked(self._once(send))
        return _checked(self._repeat(send, self.patience_s if patience_s is None else patience_s))

    def delete(self, path: str) -> None:
        """Remove what is at a path, for which there is no answer to read; raises as `request` does.

        A try whose answer was lost may have removed it: a later one that finds nothing there has nothing left to do.
        """
        lost = False

        def send() -> httpx.Response:
            nonlocal lost
            try:
                response = self._http.delete(PREFIX + path)
            except httpx.TransportError as error:
                lost = lost or not isinstance(error, NEVER_SENT)
                raise
            lost = lost or response.status_code in LOST
            return response

        response = self._repeat(send, self.patience_s)
        if not (lost and response.status_code == httpx.codes.NOT_FOUND):
            _checked(response)

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 45.0,
    ) -> Iterator[httpx.Response]:
        """An open GET whose body is read piece by piece; the caller repeats it (httpx.TransportError)."""
        with self._http.stream(
            "GET", PREFIX + path, params=_given(params), headers=headers, timeout=httpx.Timeout(timeout_s, connect=5.0)
        ) as response:
            if response.is_error:
                response.read()
            yield _checked(response)

    def _once(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        try:
            return send()
        except httpx.TransportError as error:
            raise self.unreachable(error) from error

    def _repeat(self, send: Callable[[], httpx.Response], patience_s: float) -> httpx.Response:
        told, began = False, time.monotonic()
        for pause in pauses(patience_s):
            wait_s, most_s = pause, patience_s
            try:
                response = send()
            except httpx.TransportError as error:
                if not self._answered:
                    most_s = min(patience_s, self.first_patience_s)
                    if time.monotonic() - began >= most_s:
                        raise self.unreachable(error) from error
                why = f"{self.url} does not answer"
            else:
                if response.status_code not in RETRIED:
                    return response
                wait_s, why = max(pause, _retry_after(response)), problem_of(response).detail.rstrip(".")
            if not told:
                self.tell(f"{why}: trying again for up to {most_s:.0f} s …")
                told = True
            time.sleep(wait_s)
        return self._once(send)

    def unreachable(self, error: Exception) -> exceptions.UnreachableError:
        """Exception to raise when nobody answers."""
        return exceptions.UnreachableError(
            f"{self.url} does not answer ({error or type(error).__name__}): "
            f"start it with `{home.start_command()}`, or mend TORCHYARD_URL"
        )


def pauses(patience_s: float) -> Iterator[float]:
    """Seconds to wait between tries, growing, until the patience ends."""
    end = time.monotonic() + patience_s
    pause = FIRST_PAUSE_S
    while time.monotonic() < end:
        yield pause * random.uniform(0.7, 1.3)  # noqa: S311 (spreads retries, no secret)
        pause = min(pause * 2, LONGEST_PAUSE_S)


def _given(params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (params or {}).items() if value is not None}


def _retry_after(response: httpx.Response) -> float:
    header = response.headers.get("Retry-After", "")
    return min(float(header), LONGEST_PAUSE_S) if header.isdigit() else 0.0


def _checked(response: httpx.Response) -> httpx.Response:
    if response.is_error:
        raise exceptions.from_problem(problem_of(response))
    return response
