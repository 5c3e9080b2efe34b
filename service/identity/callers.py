"""Authentication: the caller of a token, looked up by SHA-256 and cached for a moment."""

import hashlib
import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cachetools import TTLCache
from sqlalchemy import Connection, and_, bindparam, func, or_, select, update

from service.db.engine import DATABASE_ERRORS, Database
from service.db.models import Project, ProjectMember, Token, User
from service.db.records.record import Record
from torchyard.api import Role, Visibility

PREFIX = "ty_"
#: Seconds that a token found in the database is believed without asking again.
CACHE_S = 10.0
CACHE_SIZE = 4096
#: `last_used_us` is written at most this often.
LAST_USED_EVERY_US = 300 * 1_000_000
_log = logging.getLogger(__name__)

IMPLIED: dict[str, frozenset[str]] = {
    "read": frozenset({"read"}),
    "submit": frozenset({"submit", "read"}),
    "admin": frozenset({"admin", "submit", "read"}),
    "node": frozenset({"node"}),
    "join": frozenset({"join"}),
}


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The user of a request, and what the token in use allows them."""

    user_id: str
    name: str
    admin: bool
    """True if the token has the admin scope."""
    scopes: frozenset[str]
    """Scopes of the token, without those that the user's roles take away."""
    node: str | None
    """The node that a node token belongs to."""
    token_id: str
    projects: frozenset[str] = frozenset()
    """Projects whose jobs the user may read, whoever owns them; an administrator reads those of all."""
    role: Role = "member"
    """On the installation."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """In the projects that the user is a member of."""
    service_account: bool = False


def new_secret() -> str:
    """A fresh token: 256 bits."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """Hash of a token, as it is stored. A plain hash is enough: the secret has 256 bits and cannot be guessed."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def expand(scopes: Sequence[str]) -> frozenset[str]:
    """Return the scopes and those that they imply."""
    return frozenset().union(*(IMPLIED.get(scope, frozenset()) for scope in scopes))


def narrow(scopes: frozenset[str], role: Role, roles: Mapping[str, Role]) -> frozenset[str]:
    """Return the scopes that somebody of these roles may use: a viewer who is more in no project only reads."""
    lost = set() if role == "administrator" else {"admin"}
    if role == "viewer" and not any(each != "viewer" for each in roles.values()):
        lost.add("submit")
    return scopes - lost


@dataclass(frozen=True, slots=True)
class _ValidToken(Record):
    """A token that is not revoked, and its active user."""

    id: str
    user_id: str
    user_name: str
    role: Role
    service_project: str | None
    scopes: tuple[str, ...]
    node: str | None
    expires_us: int | None
    last_used_us: int | None


@dataclass(frozen=True, slots=True)
class _ReachedProject(Record):
    """A project that a user is a member of, or whose jobs everybody may read."""

    name: str
    visibility: Visibility
    role: Role | None

    @property
    def readable(self) -> bool:
        """True if the user may read all jobs in it."""
        if self.role == "administrator" or self.visibility == "everyone":
            return True
        return self.visibility == "project" and self.role is not None


@dataclass(frozen=True)
class _KnownCaller:
    caller: Caller
    expires_us: int | None


class Tokens:
    """Find the caller of a secret; revoked tokens stop counting at once in this process.

    `forgotten` tells the other services on the database to `drop` what they remember.
    """

    def __init__(
        self,
        db: Database,
        now_us: Callable[[], int],
        monotonic: Callable[[], float],
        visibility: Visibility,
        forgotten: Callable[[], object] = lambda: None,
    ) -> None:
        self._db = db
        self._visibility = visibility
        self._now_us = now_us
        self._forgotten = forgotten
        self._cache: TTLCache[str, _KnownCaller] = TTLCache(CACHE_SIZE, CACHE_S, timer=monotonic)
        self._lock = threading.Lock()
        self._generation = 0

    def set_visibility(self, visibility: Visibility) -> None:
        """Let this count for projects that do not say it themselves."""
        self._visibility = visibility
        self.drop()

    def forget(self) -> None:
        """Drop what is cached, here and elsewhere: called after every change of tokens or users."""
        self.drop()
        self._forgotten()

    def drop(self) -> None:
        """Drop what is cached here."""
        with self._lock:
            self._generation += 1
            self._cache.clear()

    def cached(self, sha256: str) -> Caller | None:
        """The caller, if known without asking the database."""
        with self._lock:
            entry = self._cache.get(sha256)
        if entry is None or self._is_over(entry.expires_us):
            return None
        return entry.caller

    def find(self, sha256: str) -> Caller | None:
        """The caller by the database; None for unknown, expired and revoked tokens."""
        generation = self._generation
        with self._db.read() as tx:
            token = _ValidToken.first(tx.execute(_FIND, {"sha256": sha256}))
            projects = None if token is None else self._projects(tx, token)
        if token is None or projects is None or self._is_over(token.expires_us):
            return None
        entry = self._entry(token, projects)
        with self._lock:
            if generation == self._generation:  # a revocation in between must not be undone by what was read before
                self._cache[sha256] = entry
        return entry.caller

    def _is_over(self, expires_us: int | None) -> bool:
        return expires_us is not None and expires_us <= self._now_us()

    def _projects(self, tx: Connection, token: _ValidToken) -> list[_ReachedProject]:
        asked = {"user_id": token.user_id, "default": self._visibility}
        found = _ReachedProject.each(tx.execute(_REACHED_PROJECTS, asked))
        return [each for each in found if token.service_project in (None, each.name)]

    def _note_use(self, token: _ValidToken) -> None:
        """Write that the token is used; where that cannot be written, as on a full disk, its user is let in without."""
        now_us = self._now_us()
        if (token.last_used_us or 0) + LAST_USED_EVERY_US >= now_us:
            return
        try:
            with self._db.write() as tx:
                tx.execute(update(Token).where(Token.id == token.id).values(last_used_us=now_us))
        except DATABASE_ERRORS as error:
            _log.warning("it is not noted that a token is used: %s", error)

    def _entry(self, token: _ValidToken, projects: Sequence[_ReachedProject]) -> _KnownCaller:
        self._note_use(token)
        roles = {each.name: each.role for each in projects if each.role is not None}
        scopes = narrow(expand(token.scopes), token.role, roles)
        caller = Caller(
            user_id=token.user_id,
            name=token.user_name,
            admin="admin" in scopes,
            scopes=scopes,
            node=token.node,
            token_id=token.id,
            projects=frozenset(each.name for each in projects if each.readable),
            role=token.role,
            roles=roles,
            service_account=token.service_project is not None,
        )
        return _KnownCaller(caller, token.expires_us)


_FIND = (
    select(
        Token.id,
        Token.user_id,
        Token.scopes,
        Token.node,
        Token.expires_us,
        Token.last_used_us,
        User.name.label("user_name"),
        User.role,
        User.project.label("service_project"),
    )
    .join(User, User.id == Token.user_id)
    .where(Token.sha256 == bindparam("sha256"), Token.revoked_us.is_(None), User.deactivated_us.is_(None))
)


_VISIBILITY = func.coalesce(Project.visibility, bindparam("default"))
_MEMBERSHIP = and_(ProjectMember.project == Project.name, ProjectMember.user_id == bindparam("user_id"))
_REACHED_PROJECTS = (
    select(Project.name, _VISIBILITY.label("visibility"), ProjectMember.role)
    .outerjoin(ProjectMember, _MEMBERSHIP)
    .where(or_(_VISIBILITY == "everyone", ProjectMember.role.is_not(None)))
)
