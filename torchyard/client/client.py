"""The Python client: submit jobs, follow them, fetch what they made.

from torchyard import Client, JobSpec

client = Client()
job = client.submit(JobSpec(command=("train.py",), live="/home/me/project"))
print(client.wait(job.id).state)
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from torchyard import api, exceptions, ids
from torchyard.client import log_stream
from torchyard.client.calls import body_of, part
from torchyard.client.connection import Connection
from torchyard.client.file_calls import FileCalls
from torchyard.client.log_calls import LogCalls
from torchyard.client.secret_calls import SecretCalls
from torchyard.client.sharing_calls import SharingCalls
from torchyard.client.sweep_calls import SweepCalls
from torchyard.states import JOB_FINAL, JobState

if TYPE_CHECKING:
    from torchyard.spec import JobSpec

#: Seconds that one request of a long poll may last.
LONG_POLL_S = 30


class Client(LogCalls, FileCalls, SweepCalls, SharingCalls, SecretCalls):
    """The service, as the owner of a token sees it.

    Finds URL and token in the arguments, in ``TORCHYARD_URL`` and ``TORCHYARD_TOKEN``, or in ``TORCHYARD_HOME``.
    Jobs are named by id or by number. Problems are raised as `torchyard.exceptions.RefusedError`, whose message names
    the field and the mend. May be shared by threads.
    """

    def __init__(self, url: str | None = None, token: str | None = None, *, timeout_s: float = 30.0) -> None:
        self.connection = Connection(url, token, timeout_s=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.connection.close()

    # Jobs

    def submit(
        self,
        spec: JobSpec | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        launcher_reason: str = "",
        analysed: bool = False,
    ) -> api.Job:
        """Submit a job; repeated on a broken connection, and still one job. A sweep goes to `submit_sweep`.

        The scripts of a `live` folder that is on this machine are read, as `yard run` does: `launcher: auto` is decided
        by them, and a mistake in them is a `torchyard.exceptions.SpecWarning`. With `analysed` the caller has done so,
        and `launcher_reason` says why the spec's launcher was chosen; the job's history shows it.
        """
        if body_of(spec).get("sweep"):
            raise exceptions.SpecError("sweep: this stands for many jobs: submit it with submit_sweep")
        body, reason = body_of(spec), launcher_reason
        if not analysed:
            body, found = self._analysed(spec, stacklevel=3)
            reason = reason or found
        return self._submit(api.Job, body, reason, idempotency_key)

    def check(self, spec: JobSpec | Mapping[str, Any], *, analysed: bool = False) -> api.DryRun:
        """Check a spec as `submit` would, and store nothing."""
        body = body_of(spec) if analysed else self._analysed(spec, stacklevel=3)[0]
        return self._answer(api.DryRun, "POST", "/jobs", body, params={"dry_run": "true"})

    def job(self, job: str) -> api.Job:
        """One job as it is now."""
        return self._get(api.Job, f"/jobs/{part(job)}")

    def jobs(self, *, limit: int | None = None, **filters: str | Sequence[str] | None) -> Iterator[api.Job]:
        """Jobs, newest first; `filters` are ``state``, ``user``, ``project``, ``tag``, ``q``, ``metric`` (such as
        ``val/loss<0.3`` or ``min:val/loss<0.3``), ``group`` (a sweep) and ``trials`` (``"false"``: none that belong to
        one).
        """
        return self._pages(api.Job, "/jobs", filters, limit)

    def wait(self, job: str, *, timeout_s: float | None = None) -> api.Job:
        """Wait for the job's end, also across a restart of the service that takes minutes.

        Returns the job as it is then; raises TimeoutError when it has not ended after `timeout_s`.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = LONG_POLL_S if deadline is None else min(LONG_POLL_S, deadline - time.monotonic())
            answer = self.connection.request(
                "GET",
                f"/jobs/{part(job)}",
                params={"wait": f"{max(0.0, left):.3f}"},
                timeout_s=LONG_POLL_S + 15,
                patience_s=log_stream.PATIENCE_S if deadline is None else None,
            )
            found = api.Job.model_validate_json(answer.content)
            if found.state in JOB_FINAL:
                return found
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"job {found.number} is still {found.state.value} after {timeout_s} s")

    def cancel(self, job: str) -> api.Job:
        """Ask a job to save its work and stop; one that waits is cancelled at once."""
        return self._post(api.Job, f"/jobs/{part(job)}/cancel")

    def hold(self, job: str) -> api.Job:
        """Keep a waiting job from starting."""
        return self._post(api.Job, f"/jobs/{part(job)}/hold")

    def release(self, job: str) -> api.Job:
        """Let a held job start."""
        return self._post(api.Job, f"/jobs/{part(job)}/release")

    def checkpoint(self, job: str) -> api.Job:
        """Ask a running job for a checkpoint now."""
        return self._post(api.Job, f"/jobs/{part(job)}/checkpoint")

    def discard(self, job: str) -> api.Job:
        """Take away the logs, metrics, checkpoints and outputs of a job that has ended, for good."""
        return self._post(api.Job, f"/jobs/{part(job)}/discard")

    def share(self, job: str, asked: api.NewSharedLink | None = None) -> api.SharedLink:
        """Make a public link to a job: whoever has it sees state, times and metrics without signing in."""
        body = (asked or api.NewSharedLink()).model_dump()
        return self._post(api.SharedLink, f"/jobs/{part(job)}/link", body, retry=False)

    def shared_links(self, job: str) -> api.SharedLinks:
        """Until when there are public links to a job."""
        return self._get(api.SharedLinks, f"/jobs/{part(job)}/link")

    def revoke_links(self, job: str) -> None:
        """Revoke all public links to a job."""
        self._delete(f"/jobs/{part(job)}/link")

    def stacks(self, job: str) -> list[api.Stacks]:
        """Stacks of the job's processes when they were last dumped, the newest first."""
        return list(self._pages(api.Stacks, f"/jobs/{part(job)}/stacks", {}))

    def ask_for_stacks(self, job: str) -> api.Job:
        """Ask for the stacks of a running job's processes."""
        return self._post(api.Job, f"/jobs/{part(job)}/stacks")

    def rerun(
        self, job: str, *, from_checkpoint: str | None = "auto", changes: Mapping[str, Any] | None = None
    ) -> api.Job:
        """Submit the job's spec again as a new job; `changes` are merged into the spec.

        `from_checkpoint` is a checkpoint's id, ``latest``, ``best``, or None for the beginning. ``auto`` goes on where
        the job did not succeed: from its newest checkpoint, or if it has none with the files that it has left.
        """
        carry = from_checkpoint == "auto" and self.job(job).state is not JobState.SUCCEEDED
        if from_checkpoint == "auto":
            from_checkpoint = "latest" if carry and self.checkpoints(job) else None
        body = {"from_checkpoint": from_checkpoint, "carry": carry, "changes": dict(changes or {})}
        headers = {"Idempotency-Key": ids.new_id("key")}
        return self._answer(api.Job, "POST", f"/jobs/{part(job)}/rerun", body, headers=headers)

    def change(self, job: str, changes: Mapping[str, Any]) -> api.Job:
        """Change a job as it is: `changes` may have its name, priority, tags, and while it waits its time limit."""
        path = f"/jobs/{part(job)}"
        headers = {"If-Match": self.connection.request("GET", path).headers["ETag"]}
        return self._answer(api.Job, "PATCH", path, dict(changes), headers=headers)

    def why(self, job: str) -> api.Why:
        """Reasons why the job waits, and what would start it sooner."""
        return self._get(api.Why, f"/jobs/{part(job)}/why")

    def events(self, job: str) -> list[api.Event]:
        """All that happened to the job, oldest first."""
        return list(self._pages(api.Event, f"/jobs/{part(job)}/events", {}))

    def attempts(self, job: str) -> list[api.Attempt]:
        """The job's attempts, oldest first."""
        return list(self._pages(api.Attempt, f"/jobs/{part(job)}/attempts", {}))

    def environment(self, job: str, attempt: int | None = None) -> api.JobEnvironment:
        """Return what was installed for an attempt, by default for the newest that has told."""
        params = {} if attempt is None else {"attempt": attempt}
        return self._get(api.JobEnvironment, f"/jobs/{part(job)}/environment", params)

    def timing(self, job: str) -> list[api.StartTiming]:
        """Read how the start of each of the job's attempts went, hop by hop, oldest first."""
        return list(self._pages(api.StartTiming, f"/jobs/{part(job)}/timing", {}))

    # The box and its people

    def nodes(self) -> list[api.Node]:
        """The nodes, their devices and who holds them."""
        return list(self._pages(api.Node, "/nodes", {}))

    def idle(self) -> list[api.IdleDevices]:
        """Devices that no job has: for which job, until when, and which jobs cannot be stopped for it."""
        return list(self._pages(api.IdleDevices, "/nodes/idle", {}))

    def drain(self, node: str, message: str = "", *, stop_jobs: bool = False) -> api.Node:
        """Give a node no new jobs; those that run go on, or save and wait. `message` tells everybody why."""
        body = api.NewDrain(message=message).model_dump(mode="json")
        params = {"stop_jobs": "true"} if stop_jobs else None
        return self._answer(api.Node, "POST", f"/nodes/{part(node)}/drain", body, params=params)

    def invite(self, node: str, asked: api.NewInvitation | None = None) -> api.Invitation:
        """Invite a machine as a node (administrators)."""
        body = (asked or api.NewInvitation()).model_dump(mode="json")
        return self._post(api.Invitation, f"/nodes/{part(node)}/invitations", body, retry=False)

    def join(self, node: str) -> api.NodeToken:
        """Return the node's own token, for an invitation, which this client has as its token."""
        return self._post(api.NodeToken, "/nodes", {"name": node}, retry=False)

    def declare_dead(self, node: str) -> api.Node:
        """Declare that a silent node and all that ran on it are gone: its jobs are retried or fail."""
        return self._post(api.Node, f"/nodes/{part(node)}/declare-dead")

    def resume(self, node: str) -> api.Node:
        """Let a drained node take jobs again."""
        return self._post(api.Node, f"/nodes/{part(node)}/resume")

    def return_device(self, node: str, device: str) -> api.Node:
        """Return a device, by index or UUID, to use that a fault has put out of use."""
        return self._post(api.Node, f"/nodes/{part(node)}/devices/{part(device)}/return")

    def notices(self) -> api.Notices:
        """Return what administrators tell everybody: the pause of the queue, and the announcement."""
        return self._get(api.Notices, "/notices")

    def pause(self, message: str = "") -> api.Notices:
        """Let no job start until `resume_queue`; those that run go on (administrators)."""
        return self._notices("PUT", "/pause", api.NewPause(message=message))

    def resume_queue(self) -> api.Notices:
        """Let jobs start again (administrators)."""
        return self._notices("DELETE", "/pause")

    def announce(self, new: api.NewAnnouncement) -> api.Notices:
        """Tell everybody something (administrators)."""
        return self._notices("PUT", "/announcement", new)

    def withdraw_announcement(self) -> api.Notices:
        """Take the announcement away (administrators)."""
        return self._notices("DELETE", "/announcement")

    def _notices(self, method: str, path: str, new: api.NewPause | api.NewAnnouncement | None = None) -> api.Notices:
        body = None if new is None else new.model_dump(mode="json", exclude_none=True)
        return self._answer(api.Notices, method, path, body)

    def queue(self, *, limit: int | None = None) -> list[api.QueueEntry]:
        """The jobs that wait, in the order in which they are looked at."""
        return list(self._pages(api.QueueEntry, "/queue", {}, limit))

    def calibration(self) -> api.Calibration:
        """Read what estimates of running times turned out to be worth."""
        return self._get(api.Calibration, "/queue/calibration")

    def now(self) -> datetime:
        """The wall clock of the service, as its answers tell it."""
        return self.connection.now()

    def settings(self) -> api.Settings:
        """The installation, and whose token this is."""
        return self._get(api.Settings, "/settings")

    def users(self) -> list[api.User]:
        """Everybody who may use the installation."""
        return list(self._pages(api.User, "/users", {}))

    def create_user(self, user: api.NewUser) -> api.User:
        """Add a user."""
        return self._post(api.User, "/users", user.model_dump(), retry=False)

    def tokens(self, *, everybody: bool = False) -> list[api.Token]:
        """One's own tokens, or everybody's (administrators)."""
        return list(self._pages(api.Token, "/tokens", {"all": "true" if everybody else None}))

    def create_token(self, request: api.TokenRequest) -> api.NewToken:
        """Make a token; its secret is in this answer and never shown again."""
        return self._post(api.NewToken, "/tokens", request.model_dump(exclude_none=True), retry=False)

    def audit(
        self,
        *,
        user: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        refused: bool | None = None,
        limit: int | None = None,
    ) -> list[api.AuditEntry]:
        """Return what was changed and refused, the newest first (administrators); times have their zones."""
        return list(self._pages(api.AuditEntry, "/audit", _audit_query(user, action, since, until, refused), limit))

    def audit_csv(
        self,
        *,
        user: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        refused: bool | None = None,
    ) -> str:
        """The same as a table with a header, whole (administrators)."""
        query = {**_audit_query(user, action, since, until, refused), "format": "csv"}
        return self.connection.request("GET", "/audit", params=query, timeout_s=300).text

    def rotate_token(self, token: str, rotation: api.TokenRotation | None = None) -> api.NewToken:
        """Replace a token by a new one; its secret is in this answer and never shown again."""
        body = (rotation or api.TokenRotation()).model_dump(exclude_none=True)
        return self._post(api.NewToken, f"/tokens/{part(token)}/rotate", body, retry=False)

    def login_link(self) -> str:
        """An address that opens the dashboard as the token's user; it counts once and for a few minutes."""
        return f"{self.connection.url}/#login={self._post(api.SignInCode, '/session/codes').code}"

    def revoke_token(self, token: str) -> None:
        """Make a token invalid at once."""
        self._delete(f"/tokens/{part(token)}")


def _audit_query(
    user: str | None, action: str | None, since: datetime | None, until: datetime | None, refused: bool | None
) -> dict[str, str | None]:
    return {
        "user": user,
        "action": action,
        "since": None if since is None else since.isoformat(),
        "until": None if until is None else until.isoformat(),
        "result": None if refused is None else "refused" if refused else "done",
    }
