"""Permissions that the accounts of jobs need on the way to their attempts, and to the interpreter of the worker."""

import os
import stat
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from torchyard import home, settingsfile

#: Variable of the worker that says whether jobs run as root.
ROOT_JOBS = f"{settingsfile.PREFIX}ROOT_JOBS"
#: As whom jobs run where the units of a whole machine start them.
INSTALLED_WORDS = (
    "accounts: jobs run as their owners' UNIX accounts, which you create: `useradd ada`, `yard users add ada "
    "--unix-user ada`; none as root or as the service's account, so the first administrator needs another: "
    "`yard users set torchyard --unix-user ACCOUNT`"
)
#: Nobody's user id: such an account owns nothing.
NOBODY = -1


def barrier(path: Path, uid: int = NOBODY, groups: Collection[int] = ()) -> Path | None:
    """Return the first folder on the way to a path, itself included, that an account may not enter; None if none.

    By default for an account that owns nothing and is in no group. Modes count, access lists do not; what does not
    exist yet is no barrier.
    """
    return next((at for at, status in _way(path) if _is_folder(status) and not _enters(status, uid, groups)), None)


def unsafe(path: Path) -> Path | None:
    """Return the first folder on the way to a path, itself included, whose entries another account than root may
    exchange; None if none.
    """
    return next((at for at, status in _way(path) if _is_folder(status) and _exchangeable(status)), None)


def attempts_problem(folder: Path) -> str | None:
    """Return why jobs of other accounts could not start in a root worker's folder, with the mend; None if they can."""
    closed = barrier(folder)
    if closed is not None:
        return (
            f"jobs of other accounts cannot start here: they may not enter {described(closed)}, and so not reach "
            f"{folder}: `chmod o+x {closed}`, or keep the attempts elsewhere (`yard worker --home`, or "
            "TORCHYARD_HOME of `yard up`)"
        )
    opened = unsafe(folder)
    if opened is not None:
        return (
            f"others than root could exchange the attempts below {described(opened)}: `chown root {opened}` and "
            f"`chmod go-w {opened}`, or keep them elsewhere (`yard worker --home`, or TORCHYARD_HOME of `yard up`)"
        )
    return None


def remarks(folder: Path) -> list[str]:
    """Return what whoever starts a stack should know of the accounts of its jobs, one line each."""
    lines = [accounts_words()]
    if os.geteuid() == 0:
        lines += [line for line in (attempts_problem(folder), interpreter_problem()) if line is not None]
    return lines


def accounts_words() -> str:
    """Return a line that says as whom jobs run, and what follows from it."""
    return _root_words() if os.geteuid() == 0 else _user_words()


def one_trust_domain() -> bool:
    """Return whether ``TORCHYARD_ONE_TRUST_DOMAIN`` is set to a yes, as workers read it."""
    return os.environ.get(f"{settingsfile.PREFIX}ONE_TRUST_DOMAIN", "").lower() in {"1", "true", "t", "yes", "y", "on"}


def root_jobs() -> bool:
    """Return whether jobs of whoever starts a stack as root run as root: unless ``TORCHYARD_ROOT_JOBS`` says no."""
    return (os.environ.get(ROOT_JOBS) or "1").lower() not in {"0", "false", "f", "no", "n", "off"}


def _root_words() -> str:
    if one_trust_domain():
        return (
            "accounts: with TORCHYARD_ONE_TRUST_DOMAIN=1 jobs of people without a UNIX account run as root: everybody "
            "who may submit may do everything on this machine"
        )
    others = (
        "those of others as their UNIX accounts, which you create: `useradd ada`, `yard users add ada --unix-user ada`"
    )
    if not root_jobs():
        return f"accounts: no jobs run as root; {others}, and yours too: `yard users set root --unix-user ACCOUNT`"
    return (
        "accounts: your own jobs run as root and may do everything on this machine, until you take another account "
        f"(`yard users set root --unix-user ACCOUNT`; TORCHYARD_ROOT_JOBS=0 refuses them); {others}"
    )


def _user_words() -> str:
    name = home.account_name()
    if one_trust_domain():
        return (
            f"accounts: with TORCHYARD_ONE_TRUST_DOMAIN=1 everybody who may submit may act as {name}, and so "
            "administer this stack"
        )
    return (
        f"accounts: jobs run as {name}, so nobody else's are taken; with TORCHYARD_ONE_TRUST_DOMAIN=1 they are, and "
        f"everybody who may submit may act as {name}; started by root, the stack runs jobs as their owners' accounts"
    )


def interpreter_problem(python: Path = Path(sys.executable)) -> str | None:
    """Return why other accounts cannot run an interpreter, with the mend; None if they can."""
    closed = barrier(python)
    if closed is None:
        return None
    return (
        f"jobs of other accounts cannot run {python}: they may not enter {described(closed)}. Install TorchYard "
        "where they can, with a Python that they can read: `/usr/bin/python3 -m venv /opt/torchyard`"
    )


def described(path: Path) -> str:
    """Return a path with its mode and owner."""
    status = path.stat()
    return f"{path} (mode {stat.S_IMODE(status.st_mode):04o}, owner {status.st_uid})"


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Return what lies on the way to a path, from the root down, and then to each thing that it is a link to."""
    seen: set[Path] = set()
    waits = [path.absolute()]
    while waits:
        target = waits.pop()
        for at in (*reversed(target.parents), target):
            if at in seen:
                continue
            seen.add(at)
            if at.is_symlink():
                waits.append(at.parent / at.readlink())
            try:
                yield at, at.stat()
            except FileNotFoundError:
                break


def _is_folder(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode)


def _enters(status: os.stat_result, uid: int, groups: Collection[int]) -> bool:
    if uid == 0:
        return True
    if status.st_uid == uid:
        return bool(status.st_mode & stat.S_IXUSR)
    return bool(status.st_mode & (stat.S_IXGRP if status.st_gid in groups else stat.S_IXOTH))


def _exchangeable(status: os.stat_result) -> bool:
    written = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    return status.st_uid != 0 or bool(written)
