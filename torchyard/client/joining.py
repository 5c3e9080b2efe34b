"""A machine that joins as a node: its own token for the one-time token of an invitation."""

from pathlib import Path

from torchyard import home
from torchyard.client.client import Client
from torchyard.exceptions import JoinError, RefusedError, UnauthorizedError


def has_joined(token_file: Path) -> bool:
    """Return whether a token lies there."""
    return token_file.exists() and bool(token_file.read_text().strip())


def join(url: str, invitation: str, node: str, token_file: Path) -> bool:
    """Get the node's token and keep it in a file, mode 0600; False, and nothing is used up, if one lies there.

    Raises JoinError for an invitation that counts no more, or is another node's; UnreachableError.
    """
    if has_joined(token_file):
        return False
    home.write_private(token_file, "")  # what cannot be written must not use the invitation up
    try:
        with Client(url, invitation) as client:
            made = client.join(node)
    except UnauthorizedError as error:
        raise JoinError(
            "this invitation counts no more: it was used, has expired or was revoked. An administrator makes another "
            f"with `yard nodes --invite {node}`"
        ) from error
    except RefusedError as error:
        raise JoinError(f"this machine cannot join as {node}: {error}") from error
    home.write_private(token_file, f"{made.secret}\n")
    return True
