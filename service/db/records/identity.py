"""Records of users and tokens."""

from dataclasses import dataclass

from service.db.records.record import Record
from torchyard.api import Role, Scope


@dataclass(frozen=True, slots=True)
class UserRecord(Record):
    """A row of `users`, whole."""

    id: str
    name: str
    role: Role
    project: str | None
    unix_user: str | None
    created_us: int
    deactivated_us: int | None


@dataclass(frozen=True, slots=True)
class TokenRecord(Record):
    """A row of `tokens`, whole."""

    id: str
    user_id: str
    name: str
    sha256: str
    scopes: tuple[Scope, ...]
    node: str | None
    parent_id: str | None
    created_us: int
    expires_us: int | None
    last_used_us: int | None
    revoked_us: int | None
