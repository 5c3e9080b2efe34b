"""Entity tags (RFC 9110)."""

import hashlib
from dataclasses import dataclass
from typing import Generic, TypeVar

Body = TypeVar("Body")


@dataclass(frozen=True)
class Tagged(Generic[Body]):
    """A response body with its entity tag; no body where the client has that version already."""

    tag: str
    body: Body | None


def etag(*parts: object) -> str:
    """A strong ETag over what an answer is made of."""
    return f'"{hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()}"'


def names(header: str | None, tag: str) -> bool:
    """Return true if an If-None-Match or If-Match header names the tag (weak comparison)."""
    if header is None:
        return False
    return header.strip() == "*" or tag in {item.strip().removeprefix("W/") for item in header.split(",")}
