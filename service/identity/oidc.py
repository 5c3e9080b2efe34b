"""Sign-in by OpenID Connect: the authorization code flow with PKCE, and whom the provider's word stands for.

Sources: OpenID Connect Core 1.0 (3.1), RFC 7636 (PKCE), RFC 9700 (state bound to the browser).
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import httpx
from sqlalchemy import Connection, select

from service.db.engine import Database
from service.db.models import User
from service.db.records.identity import UserRecord
from service.errors import ProblemError
from service.identity import audit, sessions, users
from service.identity.oidc_attempts import OidcAttempt
from torchyard import api
from torchyard.api import Role
from torchyard.spec.base import NAME
from torchyard.translatable import TranslatableText

TIMEOUT_S: Final = 10.0
#: Seconds by which the provider's clock may differ.
LEEWAY_S: Final = 60
#: Signatures by keys of the provider alone: none, and shared secrets, prove nothing here.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
#: Of several groups, the role that may most counts.
MIGHTIEST_FIRST: Final[tuple[Role, ...]] = ("administrator", "member", "viewer")


@dataclass(frozen=True, kw_only=True)
class OidcClient:
    """Registration of this installation at the provider, and the users that its word makes."""

    issuer: str
    client_id: str
    client_secret: str
    claim: str = "preferred_username"
    """Claim whose value is the user's name here."""
    create: bool = False
    """Somebody who has no user here becomes a member."""
    scopes: str = "openid profile email"
    """Scopes that are asked for, with blanks between."""
    groups_claim: str = "groups"
    """Claim whose value are somebody's groups."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Roles by group; empty: the provider says nothing of roles."""


def authorization_url(client: OidcClient, attempt: OidcAttempt, redirect_uri: str) -> str:
    """Return the address at the provider where somebody signs in; ``unavailable`` if it does not answer."""
    digest = hashlib.sha256(attempt.verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "scope": client.scopes,
        "state": attempt.state,
        "nonce": attempt.nonce,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    endpoint = _discovered(client)["authorization_endpoint"]
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"


def claims(client: OidcClient, attempt: OidcAttempt, code: str, redirect_uri: str) -> Mapping[str, Any]:
    """Exchange a code for what the provider says of somebody, and check that it says so of this sign-in.

    ``unavailable`` if the provider does not answer, ``unauthorized`` if it refuses or its word does not hold.
    """
    provider = _discovered(client)
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
    form |= {"code_verifier": attempt.verifier, "client_id": client.client_id, "client_secret": client.client_secret}
    answer = _ask("POST", provider["token_endpoint"], data=form)
    keys = _ask("GET", provider["jwks_uri"])
    return verified(client, attempt, str(answer.get("id_token", "")), keys)


def verified(client: OidcClient, attempt: OidcAttempt, id_token: str, keys: Any) -> dict[str, Any]:
    """Return the claims of an ID token; ``unauthorized`` unless the provider signed it now, for us and this sign-in."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    registry = jwt.JWTClaimsRegistry(
        leeway=LEEWAY_S,
        iss={"essential": True, "value": client.issuer},
        aud={"essential": True, "value": client.client_id},
        exp={"essential": True},
        sub={"essential": True},
        nonce={"essential": True, "value": attempt.nonce},
    )
    try:
        said = dict(jwt.decode(id_token, KeySet.import_key_set(keys), algorithms=list(ALGORITHMS)).claims)
        registry.validate(said)
    except (JoseError, ValueError, KeyError, TypeError) as error:
        why = TranslatableText(
            "provider-token", "the provider's token does not hold ({error})", error=type(error).__name__
        )
        raise _refused(why) from error
    if said["aud"] not in (client.client_id, [client.client_id]) and said.get("azp") != client.client_id:
        raise _refused(TranslatableText("provider-audience", "the provider's token is for another program"))
    return said


def open_session(db: Database, client: OidcClient, said: Mapping[str, Any], now: int) -> api.NewToken:
    """Open a session for the user whom the provider's word names, in the role that their groups have here.

    ``forbidden`` with the mend if there is no such user, or none of the groups has a role.
    """
    name = said.get(client.claim)
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "provider-claim",
                "The provider says no {claim} that names a user: an administrator sets TORCHYARD_OIDC_CLAIM.",
                claim=client.claim,
            ),
        )
    role = role_of(client, said)

    def begun() -> api.NewToken:
        with db.write() as tx:
            user = _user(tx, client, name, role, now)
            scope: api.Scope = "admin" if user.admin else "submit"
            session = sessions.begin_for_user(tx, user.id, scope, now)
            audit.record_user(tx, user.id, "session.open", session.id, now, issuer=client.issuer)
        return session

    return users.sign_in_new(begun)


def who(client: OidcClient, said: Mapping[str, Any]) -> list[str]:
    """Return by what the provider knows somebody, for them to read: the claim that names the user, name, mail."""
    told = (said.get(claim) for claim in (client.claim, "name", "email"))
    return list(dict.fromkeys(each[:100] for each in told if isinstance(each, str) and each))


def role_of(client: OidcClient, said: Mapping[str, Any]) -> Role | None:
    """Return the role that the provider's groups have here; None where groups say nothing of roles.

    ``forbidden`` if none of the groups has one.
    """
    if not client.roles:
        return None
    groups = said.get(client.groups_claim)
    listed = groups if isinstance(groups, list) else [groups]
    found = {client.roles[each] for each in listed if isinstance(each, str) and each in client.roles}
    for role in MIGHTIEST_FIRST:
        if role in found:
            return role
    known = ", ".join(str(each)[:100] for each in listed[:20] if each is not None) or "none"
    raise ProblemError(
        "forbidden",
        TranslatableText(
            "provider-groups",
            "None of your groups at the provider may use this box. It names ({claim}): {known}.",
            claim=client.groups_claim,
            known=known,
        ),
    )


def _user(tx: Connection, client: OidcClient, name: str, role: Role | None, now: int) -> api.User:
    found = UserRecord.first(tx.execute(select(User.__table__).where(User.name == name)))
    if found is None and client.create:
        made = users.add(tx, name, role or "member", now)
        audit.record_user(tx, made.id, "user.create", name, now, by="sign-in")
        return made
    if found is None:
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "sign-in-unknown",
                "There is no user {name} here: an administrator adds one with `yard users add {name}`.",
                name=name,
            ),
        )
    if found.project is not None or found.deactivated_us is not None:
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "sign-in-inactive", "{name} is deactivated, or a service account: it does not sign in.", name=name
            ),
        )
    return users.by_id(tx, found.id) if role is None else users.take_role(tx, name, role, now)


def _discovered(client: OidcClient) -> dict[str, Any]:
    found = _ask("GET", f"{client.issuer.rstrip('/')}/.well-known/openid-configuration")
    if found.get("issuer") != client.issuer:
        raise ProblemError(
            "unavailable",
            TranslatableText(
                "provider-issuer",
                "The provider calls itself {issuer}: set TORCHYARD_OIDC_ISSUER to that.",
                issuer=repr(found.get("issuer")),
            ),
        )
    return found


def _ask(method: str, url: str, **fields: Any) -> dict[str, Any]:
    try:
        answer = httpx.request(method, url, timeout=TIMEOUT_S, **fields)
        found = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise ProblemError(
            "unavailable",
            TranslatableText("provider-silent", "{url} does not answer: try again, or use a token.", url=url),
        ) from error
    if answer.is_client_error:
        raise _refused(TranslatableText("provider-refuses", "the provider refuses this sign-in"))
    if answer.is_error or not isinstance(found, dict):
        raise ProblemError(
            "unavailable",
            TranslatableText("provider-broken", "{url} is out of order: try again, or use a token.", url=url),
        )
    return found


def _refused(reason: str) -> ProblemError:
    words = TranslatableText("sign-in-refused", "Sign-in refused: {reason}. Begin anew.", reason=reason)
    return ProblemError("unauthorized", words)
