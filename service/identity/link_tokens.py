"""Tokens of public links to jobs: what a link says is signed, so that nobody makes or changes one.

A token is a JSON Web Token (RFC 7519). Its key follows from the installation's secret, so nothing of it is stored.
"""

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from torchyard.ids import JobId

if TYPE_CHECKING:
    from joserfc.jwk import OctKey  # else imported at the first use: most installations have no links

_ALGORITHM: Final = "HS256"
#: Sets the key apart from others that follow from the same secret.
_PURPOSE: Final = b"public links"


@dataclass(frozen=True, slots=True)
class Link:
    """A link as its token says it."""

    job: JobId
    serial: int
    """The job's `link_serial` when the link was made."""
    maker: str | None = None
    """Id of the user who made it; None: it is from before this was written into links."""


class LinkTokens:
    """Tokens of one installation."""

    def __init__(self, secret: str) -> None:
        self._bytes = hmac.digest(secret.encode(), _PURPOSE, "sha256")

    def sign(self, link: Link, expires_s: int) -> str:
        """Return the token of a link that counts until a unix time in seconds."""
        from joserfc import jwt

        claims = {"sub": link.job, "serial": link.serial, "by": link.maker, "exp": expires_s}
        return jwt.encode({"alg": _ALGORITHM}, claims, self._key())

    def read(self, token: str, now_s: int) -> Link | None:
        """Return the link of a token; None unless it was signed here and has not expired."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        registry = jwt.JWTClaimsRegistry(
            now=now_s, leeway=0, sub={"essential": True}, serial={"essential": True}, exp={"essential": True}
        )
        try:
            claims = jwt.decode(token, self._key(), algorithms=[_ALGORITHM]).claims
            registry.validate(claims)
        except (JoseError, ValueError, KeyError, TypeError):
            return None
        return Link(claims["sub"], claims["serial"], claims.get("by"))

    def _key(self) -> "OctKey":
        from joserfc.jwk import OctKey

        return OctKey.import_key(self._bytes)
