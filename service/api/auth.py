"""Authentication of requests: a bearer token, or the dashboard's session in a cookie that scripts cannot read."""

import hashlib
import secrets
from collections.abc import Callable
from typing import Any

from fastapi import Depends, Request, Response
from fastapi.dependencies.models import Dependant
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from service.context import Context
from service.errors import ProblemError
from service.identity import roles
from service.identity.callers import IMPLIED, Caller, Tokens, hash_secret
from service.identity.oidc_attempts import ATTEMPT_S
from service.identity.sessions import SESSION_S
from torchyard.api import PREFIX
from torchyard.translatable import TranslatableText

#: Where the caller of a request is noted, for what lies outside of the routes.
_CALLER = "torchyard.caller"


async def context(request: Request) -> Context:
    """The service's parts, for routes. A coroutine, so that it costs no thread."""
    found: Context = request.app.state.context
    return found


def cookie_name(installation: str) -> str:
    """Cookies do not know ports: two installations on one host must not share a name."""
    return f"torchyard-{hashlib.sha256(installation.encode()).hexdigest()[:8]}"


def _secret(request: Request) -> str | None:
    header = request.headers.get("authorization")
    if header is not None:  # then the cookie does not count: requests with this header may come without an Origin
        scheme, _, secret = header.partition(" ")
        return secret.strip() if scheme.lower() == "bearer" else None
    return request.cookies.get(cookie_name(request.app.state.context.installation))


async def current(request: Request) -> Caller:
    """The caller of a request; raises the `unauthorized` problem."""
    secret = _secret(request)
    if not secret:
        raise ProblemError(
            "unauthorized",
            TranslatableText("send-token", "Send 'Authorization: Bearer <token>'; `yard token show` prints yours."),
        )
    tokens: Tokens = request.app.state.tokens
    sha256 = hash_secret(secret)
    caller = tokens.cached(sha256) or await run_in_threadpool(tokens.find, sha256)
    if caller is None:
        raise ProblemError(
            "unauthorized",
            TranslatableText("token-unknown", "This token is unknown, expired or revoked: ask for a new one."),
        )
    request.scope[_CALLER] = caller
    return caller


def known_caller(scope: Scope) -> Caller | None:
    """Return who a request has turned out to come from; None before that, and for strangers."""
    found: Caller | None = scope.get(_CALLER)
    return found


def _allowing(scope: str) -> Callable[..., Any]:
    async def check(request: Request) -> Caller:
        caller = await current(request)
        if scope not in caller.scopes:
            raise roles.missing_scope(caller, scope)
        return caller

    return check


_CHECKS = {scope: _allowing(scope) for scope in IMPLIED}


def requires(scope: str) -> Any:
    """The caller as a default of a route's parameter, if the token has the scope; else a problem (401, 403)."""
    return Depends(_CHECKS[scope])


def needs_token(asked: Dependant) -> bool:
    """Tell whether a route, or what it depends on, asks who calls."""
    return asked.call in {current, *_CHECKS.values()} or any(map(needs_token, asked.dependencies))


def set_cookie(ctx: Context, response: Response, secret: str, scheme: str) -> None:
    """Hand the session to the browser, which asked by ``http`` or ``https``."""
    response.set_cookie(
        cookie_name(ctx.installation),
        secret,
        max_age=SESSION_S,
        path="/",
        httponly=True,
        samesite="strict",
        secure=ctx.settings.behind_proxy or scheme == "https",
    )


def set_attempt(ctx: Context, response: Response, state: str, scheme: str) -> None:
    """Let the browser prove that it began a sign-in at a provider. Lax: it comes back from another site."""
    response.set_cookie(
        f"{cookie_name(ctx.installation)}-oidc",
        hash_secret(state),
        max_age=ATTEMPT_S,
        path=f"{PREFIX}/session/oidc",
        httponly=True,
        samesite="lax",
        secure=ctx.settings.behind_proxy or scheme == "https",
    )


def is_attempt(ctx: Context, request: Request, state: str) -> bool:
    """Return whether the browser began the sign-in of a state."""
    known = request.cookies.get(f"{cookie_name(ctx.installation)}-oidc", "")
    return secrets.compare_digest(known.encode(), hash_secret(state).encode())


def drop_cookie(ctx: Context, response: Response, scheme: str) -> None:
    """Make the browser forget the session."""
    secure = ctx.settings.behind_proxy or scheme == "https"
    response.delete_cookie(cookie_name(ctx.installation), path="/", httponly=True, samesite="strict", secure=secure)
