"""Sign-in by UNIX account: the user whom an account of this machine stands for, and a token for them.

The kernel names the account, so no secret is handed round. But whatever runs as the account may ask, its jobs too: so
a token that is got this way administers nothing, unless the administrator names the account in the settings.
"""

import re
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, or_, select, update

from service.db.engine import Database
from service.db.models import Token, User
from service.db.records.identity import UserRecord
from service.errors import ProblemError
from service.identity import audit, tokens, users
from torchyard import api
from torchyard.spec.base import NAME
from torchyard.translatable import TranslatableText

TOKEN_S: Final = 30 * 86_400
#: Tokens of one account that count at a time; a further sign-in ends the oldest.
MAX_TOKENS: Final = 10
#: Accounts of people begin here, and the one of nobody ends them.
FIRST_UID, NOBODY_UID = 1000, 65534


@dataclass(frozen=True, slots=True)
class UnixAccount:
    """An account of this machine, as the kernel and its list of accounts name it."""

    uid: int
    name: str


@dataclass(frozen=True, kw_only=True)
class SignInRule:
    """Sign-ins that the administrator allows."""

    mode: api.UnixSignIn
    administrators: tuple[str, ...] = ()
    """Accounts that may use the rights of an administrator; root signs in only if it is one of them."""


def sign_in(db: Database, rule: SignInRule, account: UnixAccount, now: int) -> api.NewToken:
    """Return a token for the user whom an account stands for; ``forbidden`` with the mend where there is none."""
    if rule.mode == "off":
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "unix-sign-in-off", "Nobody signs in by UNIX account here: an administrator makes you a token."
            ),
        )
    trusted = account.name in rule.administrators
    if account.uid == 0 and not trusted:
        raise ProblemError(
            "forbidden",
            TranslatableText("root-sign-in", "root signs in here only if TORCHYARD_UNIX_ADMINISTRATORS names it."),
        )

    def made() -> api.NewToken:
        with db.write() as tx:
            user = _user(tx, rule.mode, account, now)
            scope: api.Scope = "admin" if trusted and user.admin else "submit"
            token = _token(tx, user, account, scope, now)
            audit.record_user(tx, user.id, "session.open", token.id, now, unix_user=account.name)
        return token

    return users.sign_in_new(made)


def _user(tx: Connection, mode: api.UnixSignIn, account: UnixAccount, now: int) -> api.User:
    found = _found(tx, account)
    if found is None and mode == "create":
        _check_person(account)
        found = users.add(tx, account.name, "member", now, unix_user=account.name)
        audit.record_user(tx, found.id, "user.create", account.name, now, unix_user=account.name, by="sign-in")
    if found is None:
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "unix-account-of-nobody",
                "No user here has the UNIX account {account}: an administrator adds one with "
                "`yard users add {account} --unix-user {account}`.",
                account=account.name,
            ),
        )
    if not found.active:
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "sign-in-deactivated", "{name} is deactivated: an administrator ends that.", name=found.name
            ),
        )
    return found


def _found(tx: Connection, account: UnixAccount) -> api.User | None:
    """Return the user who has the account, else the one of its name who has none.

    Where all who had it are deactivated it is the one of its name, else who was deactivated last: whom the account is
    told of, and whom an administrator would activate again.
    """
    named = or_(User.unix_user == account.name, User.name == account.name)
    latest = select(User.__table__).order_by(User.deactivated_us.desc(), User.name)
    rows = UserRecord.all(tx.execute(latest.where(named, User.project.is_(None))))
    owners = [row for row in rows if row.unix_user == account.name and row.deactivated_us is None]
    if len(owners) > 1:
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "unix-account-shared",
                "{names} share the UNIX account {account}, which tells them not apart: take a token.",
                names=tuple(sorted(row.name for row in owners)),
                account=account.name,
            ),
        )
    of_name = [row for row in rows if row.name == account.name]
    if not owners and of_name and of_name[0].unix_user not in (None, account.name):
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "unix-account-other",
                "The user {name} has another UNIX account, {other}: `yard users set` changes that.",
                name=account.name,
                other=str(of_name[0].unix_user),
            ),
        )
    chosen = owners or of_name or rows
    return users.by_id(tx, chosen[0].id) if chosen else None


def _check_person(account: UnixAccount) -> None:
    """Refuse accounts of programs, and names that no user may have."""
    if not FIRST_UID <= account.uid < NOBODY_UID or not re.fullmatch(NAME, account.name):
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "unix-account-no-person",
                "{account} is no person's account: an administrator adds a user for it.",
                account=account.name,
            ),
        )


def _token(tx: Connection, user: api.User, account: UnixAccount, scope: api.Scope, now: int) -> api.NewToken:
    name = f"sign-in as {account.name}"
    own = select(Token.id).where(Token.user_id == user.id, Token.name == name, Token.revoked_us.is_(None))
    alive = own.where(Token.expires_us > now).order_by(Token.created_us.desc(), Token.id.desc())
    ended = list(tx.scalars(alive.offset(MAX_TOKENS - 1)))
    tx.execute(update(Token).where(or_(Token.id.in_(ended), Token.parent_id.in_(ended))).values(revoked_us=now))
    return tokens.issue(tx, user.id, name, [scope], now, expires_us=now + TOKEN_S * 1_000_000)
