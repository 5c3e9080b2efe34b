"""Name and password in a URL, as ``redis://name:password@host:6379/0`` has them."""

from urllib.parse import quote, urlsplit


def login(url: str) -> str:
    """Return ``name:password`` as the URL has them, escapes and all; empty if it has none."""
    return urlsplit(url).netloc.rpartition("@")[0]


def with_login(url: str, found: str) -> str:
    """Return the URL with this ``name:password`` in place of its own; without one if it is empty."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    scheme, rest = f"{parts.scheme}://", url[len(parts.scheme) + 3 + len(parts.netloc) :]
    return f"{scheme}{found}@{place}{rest}" if found else f"{scheme}{place}{rest}"


def written(name: str, password: str) -> str:
    """Return ``name:password`` with escapes for what means something else in a URL."""
    return f"{quote(name, safe='')}:{quote(password, safe='')}"
