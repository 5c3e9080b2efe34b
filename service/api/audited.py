"""Audit of requests: what changes something, and what is refused, leaves an entry that says by whom and from where."""

import asyncio
import logging
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.auth import known_caller
from service.context import Context
from service.db.engine import DATABASE_ERRORS
from service.identity import audit, refusals
from service.identity.audit import AuditedRequest
from service.identity.refusals import Refusal, Refusals
from torchyard.api import PREFIX

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
REFUSED: Final = frozenset({401, 403, 429})
#: Nodes report all the time, by their own tokens: only what is refused of that is recorded.
AGENT: Final = f"{PREFIX}/agent/"
#: The one thing that a browser changes by being led there.
OIDC_CALLBACK: Final = f"{PREFIX}/session/oidc/callback"
#: Longest subject that is stored.
MAX_SUBJECT: Final = 200

#: The action of each route that changes something, by method and path below the prefix.
ACTIONS: Final[dict[tuple[str, str], str]] = {
    ("POST", "/jobs"): "job.submit",
    ("PATCH", "/jobs/{job_id}"): "job.change",
    ("POST", "/jobs/{job_id}/cancel"): "job.cancel",
    ("POST", "/jobs/{job_id}/hold"): "job.hold",
    ("POST", "/jobs/{job_id}/release"): "job.release",
    ("POST", "/jobs/{job_id}/checkpoint"): "job.checkpoint",
    ("POST", "/jobs/{job_id}/discard"): "job.discard",
    ("POST", "/jobs/{job_id}/rerun"): "job.rerun",
    ("POST", "/jobs/{job_id}/stacks"): "job.stacks",
    ("POST", "/jobs/{job_id}/outputs/bring"): "job.bring-outputs",
    ("POST", "/jobs/{job_id}/link"): "job.share",
    ("DELETE", "/jobs/{job_id}/link"): "job.unshare",
    ("DELETE", "/checkpoints/{checkpoint_id}"): "checkpoint.delete",
    ("POST", "/groups/{group}/cancel"): "sweep.cancel",
    ("POST", "/groups/{group}/hold"): "sweep.hold",
    ("POST", "/groups/{group}/release"): "sweep.release",
    ("POST", "/groups/{group}/resume"): "sweep.resume",
    ("POST", "/snapshots"): "snapshot.create",
    ("PUT", "/snapshots/{snapshot_id}/blobs/{sha256}"): "snapshot.upload",
    ("POST", "/snapshots/{snapshot_id}/commit"): "snapshot.commit",
    ("POST", "/snapshots/prune"): "snapshot.prune",
    ("POST", "/nodes"): "node.join",
    ("POST", "/nodes/{name}/invitations"): "node.invite",
    ("POST", "/nodes/{name}/drain"): "node.drain",
    ("POST", "/nodes/{name}/resume"): "node.resume",
    ("POST", "/nodes/{name}/declare-dead"): "node.declare-dead",
    ("POST", "/nodes/{name}/devices/{device}/return"): "node.return-device",
    ("PUT", "/pause"): "queue.pause",
    ("DELETE", "/pause"): "queue.resume",
    ("PUT", "/announcement"): "announcement.set",
    ("DELETE", "/announcement"): "announcement.clear",
    ("POST", "/users"): "user.create",
    ("PATCH", "/users/{name}"): "user.change",
    ("DELETE", "/users/{name}"): "user.change",
    ("POST", "/tokens"): "token.create",
    ("DELETE", "/tokens/{token}"): "token.revoke",
    ("POST", "/tokens/{token}/rotate"): "token.rotate",
    ("POST", "/projects"): "project.create",
    ("PATCH", "/projects/{name}"): "project.change",
    ("PUT", "/projects/{name}/members/{user}"): "project.add-member",
    ("DELETE", "/projects/{name}/members/{user}"): "project.remove-member",
    ("PUT", "/secrets/{name}"): "secret.set",
    ("DELETE", "/secrets/{name}"): "secret.remove",
    ("PUT", "/projects/{project}/secrets/{name}"): "secret.set",
    ("DELETE", "/projects/{project}/secrets/{name}"): "secret.remove",
    ("PUT", "/policy"): "policy.set",
    ("PUT", "/quotas/{kind}/{name}"): "quota.set",
    ("POST", "/policy/what-if"): "policy.try",
    ("POST", "/reservations"): "reservation.create",
    ("PUT", "/reservations/{reservation}"): "reservation.change",
    ("DELETE", "/reservations/{reservation}"): "reservation.cancel",
    ("POST", "/session"): "session.open",
    ("GET", "/session/oidc/callback"): "session.open",
    ("DELETE", "/session"): "session.close",
    ("POST", "/session/codes"): "session.make-code",
    ("POST", "/users/{name}/sign-in-codes"): "session.make-code",
    ("PUT", "/live/{stream}"): "stream.follow",
}
#: The action of reading what exists and is hidden, by the first word of the path.
READ: Final = {"jobs": "job.read", "groups": "sweep.read", "checkpoints": "checkpoint.read"}
#: Actions whose success is always a change, and that no transaction records. The others record what they change
#: themselves: a success of theirs without an entry has changed nothing.
RECORDED_HERE: Final = frozenset(
    {
        *("checkpoint.delete", "job.bring-outputs", "job.discard", "job.stacks", "session.close", "session.make-code"),
        *("session.open", "snapshot.commit", "snapshot.create"),
    }
)


def action_of(method: str, path: str) -> str:
    """Return the action of a route's method and path, which are told apart below the prefix."""
    if path.startswith(AGENT):
        return "agent.report"
    below = path.removeprefix(PREFIX)
    if (method, below) not in ACTIONS and method in SAFE_METHODS:
        return READ.get(below.strip("/").partition("/")[0], "unknown")
    return ACTIONS.get((method, below), "unknown")


class Audited:
    """Middleware outside of all that may refuse a request."""

    def __init__(self, app: ASGIApp, context: Context, refused: Refusals) -> None:
        self._app = app
        self._context = context
        self._refused = refused
        self._storing: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(f"{PREFIX}/"):
            await self._app(scope, receive, send)
            return
        request = AuditedRequest(_address(scope), lambda: _action(scope))

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":  # before anybody hears of it
                await self._record(scope, request, message["status"])
            await send(message)

        with audit.auditing(request):
            await self._app(scope, receive, sent)

    async def _record(self, scope: Scope, request: AuditedRequest, status: int) -> None:
        try:
            if status == 404 and request.hidden:
                self._refuse_later(scope, request, status)
            elif not _is_change(scope["method"], scope["path"]):
                return
            elif status in REFUSED:
                await self._refuse(scope, request, status)
            elif status < 300 and not request.recorded and _action(scope) in RECORDED_HERE:
                await run_in_threadpool(self._store, _user(scope), request, _subject(scope))
        except DATABASE_ERRORS:
            _logger.exception("the audit lacks %s %s of %s", scope["method"], scope["path"][:MAX_SUBJECT], _user(scope))

    def _refuse_later(self, scope: Scope, request: AuditedRequest, status: int) -> None:
        """Record it beside the answer: how long that takes must not tell what exists from what does not."""
        task = asyncio.create_task(self._refuse_hidden(scope, request, status))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)

    async def _refuse_hidden(self, scope: Scope, request: AuditedRequest, status: int) -> None:
        try:
            await self._refuse(scope, request, status)
        except DATABASE_ERRORS:
            _logger.exception("the audit lacks a refused %s of %s", request.action(), _user(scope))

    async def _refuse(self, scope: Scope, request: AuditedRequest, status: int) -> None:
        user = _user(scope)
        # What strangers ask for does not tell their requests apart: they could name ever new things.
        refusal = Refusal(user, request.address, request.action(), _subject(scope) if user else "", status)
        noted = self._refused.note(refusal)
        if noted.new is not None or noted.counts:
            await run_in_threadpool(refusals.store, self._context.db, noted, self._context.now_us())

    def _store(self, user_id: str, request: AuditedRequest, subject: str) -> None:
        columns = {"user_id": user_id, "address": request.address, "action": request.action(), "subject": subject}
        audit.store(self._context.db, self._context.now_us(), **columns)


def _is_change(method: str, path: str) -> bool:
    return path == OIDC_CALLBACK or method not in SAFE_METHODS


def _address(scope: Scope) -> str | None:
    client = scope.get("client")
    return client[0] if client else None


def _user(scope: Scope) -> str:
    caller = known_caller(scope)
    return caller.user_id if caller else ""


def _action(scope: Scope) -> str:
    route, _ = _routed(scope)
    return action_of(scope["method"], route)


def _subject(scope: Scope) -> str:
    """Return the parameters of the path, which name what is changed; nothing that a database cannot store."""
    _, parameters = _routed(scope)
    text = "/".join(str(each) for each in parameters.values())
    return "".join(each if each.isprintable() else "?" for each in text[:MAX_SUBJECT])


def _routed(scope: Scope) -> tuple[str, dict[str, Any]]:
    """Return the path and the parameters of the request's route; what is refused early has not been routed yet."""
    if (route := scope.get("route")) is not None:
        return route.path, scope.get("path_params", {})
    for each in scope["app"].routes:
        if isinstance(each, Route):
            match, child = each.matches(scope)
            if match is Match.FULL:
                return each.path, child["path_params"]
    return scope["path"], {"path": scope["path"]}


_logger = logging.getLogger(__name__)
