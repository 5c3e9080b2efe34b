"""The client's calls about secrets."""

from __future__ import annotations

from urllib.parse import quote

from pydantic import TypeAdapter

from torchyard import api
from torchyard.client.connection import Connection


class SecretCalls:
    """Part of `torchyard.Client`."""

    connection: Connection

    def secrets(self) -> list[api.Secret]:
        """One's own secrets and those of one's projects, without their values."""
        return TypeAdapter(list[api.Secret]).validate_json(self.connection.request("GET", "/secrets").content)

    def set_secret(self, name: str, value: str, *, project: str | None = None) -> api.Secret:
        """Set one's own secret, or a project's (administrators): jobs that name it start with this value."""
        answer = self.connection.request("PUT", _path(name, project), json={"value": value})
        return api.Secret.model_validate_json(answer.content)

    def remove_secret(self, name: str, *, project: str | None = None) -> None:
        """Remove one's own secret, or a project's (administrators)."""
        self.connection.request("DELETE", _path(name, project), retry=False)


def _path(name: str, project: str | None) -> str:
    secret = f"/secrets/{quote(name, safe='')}"
    return secret if project is None else f"/projects/{quote(project, safe='')}{secret}"
