"""Entity tags (RFC 9110)."""

import hashlib


def etag(*parts: object) -> str:
    """A strong ETag over what an answer is made of."""
    return f'"{hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()}"'


def names(header: str, tag: str) -> bool:
    """Whether an If-None-Match or If-Match header names the tag (weak comparison)."""
    return header.strip() == "*" or tag in {item.strip().removeprefix("W/") for item in header.split(",")}
