"""``/session``: how the dashboard signs in and out."""

from typing import Annotated

from fastapi import Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from service.api import auth, sign_in_page
from service.api.answers import answer
from service.api.auth import context, requires
from service.api.routes.router import api_router
from service.context import Context
from service.errors import ProblemError, field_problem
from service.identity import oidc, oidc_attempts, roles, sessions, sign_in_codes
from service.identity.callers import Caller, Tokens, hash_secret
from service.identity.oidc_attempts import OidcAttempt
from service.identity.provider_calls import ProviderCalls
from service.identity.sign_in_limits import SignInLimits
from service.infra.times import moment
from torchyard import api
from torchyard.translatable import TranslatableText

# Providers of OpenID Connect add parameters of their own.
router = api_router("session", "/session", route_class=APIRoute)

Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]
State = Annotated[str, Query(description="By which the attempt is known again.")]
Code = Annotated[str, Query(description="The provider's code.")]
Error = Annotated[str, Query(description="Why the provider refuses.")]


@router.post("", status_code=201, response_model=api.User)
def sign_in(request: Request, asked: api.SignIn, ctx: Ctx) -> Response:
    """Sign in with a token or a one-time code. The answer sets the session's cookie."""
    user, session = sessions.open_session(ctx.db, _token_id(request, ctx, asked), ctx.now_us())
    made = answer(user, status=201)
    auth.set_cookie(ctx, made, session.secret, request.url.scheme)
    return made


def _token_id(request: Request, ctx: Context, asked: api.SignIn) -> str:
    """Return the token that somebody signs in with; ``unauthorized``, and slower with each, for a wrong secret.

    A right one is never slowed: it has 192 bits at least, so what others guess at the same time, from the same address
    too, is no reason to keep its owner out.
    """
    if (asked.token is None) == (asked.code is None):
        raise field_problem("token", TranslatableText("token-or-code", "give either a token or a code"))
    found = (
        sign_in_codes.take(ctx.db, asked.code, ctx.now_us())
        if asked.code is not None
        else _by_token(request, asked.token or "")
    )
    if found is not None:
        return found
    limits: SignInLimits = request.app.state.sign_in_limits
    limits.begin(_address(request))
    raise ProblemError(
        "unauthorized",
        TranslatableText("proof-unknown", "This token or code is unknown or used up: ask for a new one."),
    )


def _by_token(request: Request, secret: str) -> str | None:
    tokens: Tokens = request.app.state.tokens
    caller = tokens.find(hash_secret(secret))
    return caller.token_id if caller else None


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


@router.get("/ways", response_model=api.SignInWays)
def list_ways(ctx: Ctx) -> Response:
    """List ways to sign in beside tokens and codes. Anybody may ask."""
    return answer(api.SignInWays(oidc=ctx.settings.oidc_issuer))


@router.get("/oidc", status_code=302, response_class=RedirectResponse)
def begin_oidc(request: Request, ctx: Ctx) -> Response:
    """Begin a sign-in by OpenID Connect. Leads to the provider, with a cookie by which this browser is known again."""
    calls: ProviderCalls = request.app.state.provider_calls
    try:
        with calls.calling(_address(request)):
            attempt = oidc_attempts.new()
            address = oidc.authorization_url(_oidc(ctx), attempt, _redirect_uri(request))
        oidc_attempts.keep(ctx.db, attempt, _address(request), ctx.now_us())
    except ProblemError as refusal:
        return sign_in_page.refuse(request, refusal, (), ctx.settings.oidc_contact)
    there = RedirectResponse(address, 302)
    auth.set_attempt(ctx, there, attempt.state, request.url.scheme)
    return there


@router.get("/oidc/callback", status_code=302, response_class=RedirectResponse)
def end_oidc(request: Request, ctx: Ctx, state: State = "", code: Code = "", error: Error = "") -> Response:
    """End a sign-in by OpenID Connect. Leads to the dashboard; a browser gets a refusal as a page."""
    calls: ProviderCalls = request.app.state.provider_calls
    who: list[str] = []
    try:
        client = _oidc(ctx)
        with calls.calling(_address(request)):  # before the state, which counts once
            attempt = _attempt(request, ctx, state, "" if error else code)
            said = oidc.claims(client, attempt, code, _redirect_uri(request))
        who = oidc.who(client, said)
        session = oidc.open_session(ctx.db, client, said, ctx.now_us())
    except ProblemError as refusal:
        return sign_in_page.refuse(request, refusal, who, ctx.settings.oidc_contact)
    tokens: Tokens = request.app.state.tokens
    tokens.forget()  # the sign-in may have changed the user's role
    home = RedirectResponse("/", 302)
    auth.set_cookie(ctx, home, session.secret, request.url.scheme)
    return home


def _attempt(request: Request, ctx: Context, state: str, code: str) -> OidcAttempt:
    known = auth.is_attempt(ctx, request, state)
    attempt = oidc_attempts.take(ctx.db, state, ctx.now_us()) if known else None
    if attempt is None or not code:
        raise ProblemError(
            "unauthorized",
            TranslatableText(
                "sign-in-elsewhere", "This sign-in was not begun in this browser, took too long or was refused."
            ),
        )
    return attempt


def _oidc(ctx: Context) -> oidc.OidcClient:
    settings = ctx.settings
    if settings.oidc_issuer is None:
        raise ProblemError(
            "not-found",
            TranslatableText("no-openid", "Nobody signs in by OpenID Connect here: TORCHYARD_OIDC_ISSUER is not set."),
        )
    secret = settings.oidc_secret_file
    return oidc.OidcClient(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=secret.read_text().strip() if secret else "",
        claim=settings.oidc_claim,
        create=settings.oidc_create,
        scopes=settings.oidc_scopes,
        groups_claim=settings.oidc_groups_claim,
        roles=dict(settings.oidc_roles),
    )


def _redirect_uri(request: Request) -> str:
    return f"{str(request.base_url).rstrip('/')}{api.PREFIX}/session/oidc/callback"


@router.delete("", status_code=204)
def sign_out(request: Request, response: Response, caller: Reader, ctx: Ctx) -> None:
    """Sign out, which ends the session and clears its cookie."""
    sessions.close_session(ctx.db, request.app.state.tokens, caller, ctx.now_us())
    auth.drop_cookie(ctx, response, request.url.scheme)


@router.post("/codes", status_code=201, response_model=api.SignInCode)
def make_code(caller: Reader, ctx: Ctx) -> Response:
    """Make a code for a login link of one's own. It counts once and for five minutes."""
    roles.refuse_service_account(caller, TranslatableText("signs-in-nowhere", "signs in nowhere"))
    now = ctx.now_us()
    code = sign_in_codes.make(ctx.db, caller.user_id, caller.token_id, now)
    return answer(api.SignInCode(code=code, expires_at=moment(now + sign_in_codes.CODE_S * 1_000_000)), status=201)
