"""The client's calls about secrets."""

from __future__ import annotations

from torchyard import api
from torchyard.client.calls import Calls, part


class SecretCalls(Calls):
    """Secrets, as part of `torchyard.Client`."""

    def secrets(self) -> list[api.Secret]:
        """One's own secrets and those of one's projects, without their values."""
        return list(self._pages(api.Secret, "/secrets", {}))

    def set_secret(self, name: str, value: str, *, project: str | None = None) -> api.Secret:
        """Set one's own secret, or a project's (administrators): jobs that name it start with this value."""
        return self._answer(api.Secret, "PUT", _path(name, project), {"value": value})

    def remove_secret(self, name: str, *, project: str | None = None) -> None:
        """Remove one's own secret, or a project's (administrators)."""
        self._delete(_path(name, project))


def _path(name: str, project: str | None) -> str:
    secret = f"/secrets/{part(name)}"
    return secret if project is None else f"/projects/{part(project)}{secret}"
