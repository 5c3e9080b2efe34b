"""Specs of jobs that need nothing of the box but a slot."""

from typing import Any


def spec(**changes: Any) -> dict[str, Any]:
    """A valid job of one slot that does nothing."""
    return {"name": "nothing", "command": ["true"], "launcher": "none", **changes}
