"""``/session``: how the dashboard signs in and out."""

from typing import Annotated

from fastapi import Depends, Request, Response

from service.api import auth
from service.api.answers import answer
from service.api.auth import context, requires
from service.api.routes.router import api_router
from service.context import Context
from service.errors import ProblemError, field_problem
from service.identity import roles, sessions
from service.identity.callers import Caller, Tokens, hash_secret
from service.identity.sign_in_limits import SignInLimits
from service.infra.times import moment
from torchyard import api

router = api_router("session", "/session")

Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]


@router.post("", status_code=201, response_model=api.User)
def sign_in(request: Request, asked: api.SignIn, ctx: Ctx) -> Response:
    """Opens a session with a token or a one-time code; the answer sets its cookie."""
    limits: SignInLimits = request.app.state.sign_in_limits
    counted = limits.begin(request.client.host if request.client else "")
    token_id = _token_id(request, asked)
    if token_id is None:
        raise ProblemError("unauthorized", "This token or code is unknown or used up: ask for a new one.")
    user, session = sessions.open_session(ctx.db, token_id, ctx.now_us())
    limits.succeeded(counted)
    made = answer(user, status=201)
    auth.set_cookie(ctx, made, session.secret, request.url.scheme)
    return made


def _token_id(request: Request, asked: api.SignIn) -> str | None:
    if (asked.token is None) == (asked.code is None):
        raise field_problem("token", "give either a token or a code")
    if asked.code is not None:
        codes: sessions.Codes = request.app.state.codes
        return codes.take(asked.code)
    tokens: Tokens = request.app.state.tokens
    caller = tokens.find(hash_secret(asked.token or ""))
    return caller.token_id if caller else None


@router.delete("", status_code=204)
def sign_out(request: Request, response: Response, caller: Reader, ctx: Ctx) -> None:
    """Ends the session and clears its cookie."""
    sessions.close_session(ctx.db, request.app.state.tokens, caller, ctx.now_us())
    auth.drop_cookie(ctx, response, request.url.scheme)


@router.post("/codes", status_code=201, response_model=api.SignInCode)
def make_code(request: Request, caller: Reader, ctx: Ctx) -> Response:
    """A code for a login link; it counts once and for five minutes."""
    roles.refuse_service_account(caller, "signs in nowhere")
    codes: sessions.Codes = request.app.state.codes
    expires_us = ctx.now_us() + sessions.CODE_S * 1_000_000
    return answer(
        api.SignInCode(code=codes.make(caller.user_id, caller.token_id), expires_at=moment(expires_us)), status=201
    )
