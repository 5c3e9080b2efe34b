"""Names and values that look like keys and passwords."""

import re
from collections.abc import Mapping
from typing import Final

#: Words of a variable's name, between underscores, that say it is somebody's alone.
_WORDS: Final = frozenset({"AUTH", "CREDENTIAL", "CREDENTIALS", "KEY", "SECRET", "TOKEN"})
#: A key or token; what is shorter or has no digit names a column, a special token and the like.
_KEY: Final = re.compile(r"(?=.*[0-9])[^\s</][^\s<]{7,}")
_KNOWN: Final = re.compile(
    r"""
    (?<![A-Za-z0-9_]) (?:
    hf_[A-Za-z0-9]{20,}                             # Hugging Face
    | sk-[A-Za-z0-9_-]{16,}                         # OpenAI, Anthropic and others
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}
    | (?:AKIA|ASIA)[A-Z0-9]{16}                     # AWS
    | AIza[\w-]{30,}                                # Google
    | xox[abprs]-[\w-]{10,}                         # Slack
    | ty_[\w-]{40,}                                 # a token of this service
    ) | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----
    """,
    re.VERBOSE,
)
_PASSWORD_IN_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@", re.IGNORECASE)


def named_like_credential(name: str) -> bool:
    """Return whether a variable's name has a word such as KEY or TOKEN, or speaks of a password."""
    return not _WORDS.isdisjoint(name.upper().split("_")) or _of_password(name)


def credentials(variables: Mapping[str, str]) -> list[str]:
    """Return the names of those variables that look like keys or passwords, by name or value."""
    return [name for name, value in variables.items() if _looks_like_credential(name, value)]


def _looks_like_credential(name: str, value: str) -> bool:
    if _KNOWN.search(value) or _PASSWORD_IN_URL.match(value):
        return True
    return named_like_credential(name) and (_of_password(name) or _KEY.fullmatch(value) is not None)


def _of_password(name: str) -> bool:
    return "PASSW" in name.upper()
