"""The UNIX user that a job runs as."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from torchyard import home
from torchyard.stack import access
from worker.exceptions import IdentityError

_TRUST = "or start it with TORCHYARD_ONE_TRUST_DOMAIN=1, if all users may act as the worker's own UNIX user"

_OPEN = "an administrator lets it in, or moves what lies there to where it may go (the worker's log says how)"


@dataclass(frozen=True, kw_only=True)
class UnixUser:
    """A UNIX user that the job's processes turn into."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


def identity(
    user: str, unix_user: str | None, *, one_trust_domain: bool, root_jobs: bool = False, token_file: Path | None = None
) -> UnixUser | None:
    """Return the UNIX user that a job of `user` runs as; None: the worker itself.

    `one_trust_domain` is the administrator's word that all users may act as the worker's own UNIX user, `root_jobs`
    that jobs of people whose account is root run as root. Whoever owns the node's `token_file` runs no jobs for root:
    on an installed machine that account has the service's database and tokens. Raises IdentityError with the remedy
    when the worker must not run the job.
    """
    own = os.geteuid()
    if unix_user is None:
        if one_trust_domain:
            return None
        raise IdentityError(f"{user} has no UNIX account, so the worker cannot run the job: set one; {_TRUST}")
    account = _account(unix_user)
    if account is not None and account.uid == own:
        if own == 0:
            _check_root(user, unix_user, accepted=one_trust_domain or root_jobs)
        return None
    if own == 0 and account is not None:
        _check_not_the_services(user, account, token_file)
        return account
    if own == 0:
        raise IdentityError(f"the UNIX user {unix_user} of {user} does not exist on this node: create it here")
    if one_trust_domain:
        return None
    raise IdentityError(
        f"this worker runs as {home.account_name()} and may not run jobs of {unix_user}: run it as root; {_TRUST}"
    )


def _check_root(user: str, unix_user: str, *, accepted: bool) -> None:
    if unix_user != home.account_name():
        raise IdentityError(f"the UNIX user {unix_user} of {user} is root by another name: name another account")
    if not accepted:
        raise IdentityError(
            f"the job of {user} would run as root: an administrator gives them another account with `yard users set "
            f"{user} --unix-user ACCOUNT`, or starts the worker with TORCHYARD_ROOT_JOBS=1"
        )


def _check_not_the_services(user: str, account: UnixUser, token_file: Path | None) -> None:
    if token_file is not None and token_file.exists() and token_file.stat().st_uid == account.uid:
        raise IdentityError(
            f"the job of {user} would run as {account.name}, to which {token_file} belongs, and with it could read the "
            "node's token, if not all of the service's: an administrator gives them another account with `yard users "
            f"set {user} --unix-user ACCOUNT`"
        )


def runs_as(
    unix_user: str,
    *,
    one_trust_domain: bool,
    root_jobs: bool = False,
    token_file: Path | None = None,
    attempts: Path,
) -> bool:
    """Return whether jobs of people with this account can run here."""
    accepted = {"one_trust_domain": one_trust_domain, "root_jobs": root_jobs}
    try:
        who = identity("", unix_user, **accepted, token_file=token_file)
        if who is not None:
            check_access(who, attempts)
    except IdentityError:
        return False
    return True


def check_access(who: UnixUser, *paths: Path) -> None:
    """Raise IdentityError, with the mend, if an account may not enter a folder on the way to one of these paths."""
    for path in paths:
        closed = access.barrier(path, who.uid, who.groups)
        if closed is not None:
            raise IdentityError(
                f"{who.name} may not enter {access.described(closed)}, and so not reach {path}: {_OPEN}"
            )


def _account(name: str) -> UnixUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    return UnixUser(name=name, uid=entry.pw_uid, gid=entry.pw_gid, groups=groups, home=entry.pw_dir)
