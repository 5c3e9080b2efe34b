"""Installation of one box by systemd: accounts, folders, units and settings, as a plan that is made or only compared.

As root, service and Redis run as an account of their own, and the worker as root, which starts each job as its owner's.
As a user, there is one unit, which holds up the stack of ``yard up``.
"""

import configparser
import os
import pwd
import secrets
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from torchyard import home, settingsfile
from torchyard.exceptions import InstallError

#: The account of service and Redis.
ACCOUNT: Final = "torchyard"
#: Where `yard login` signs in by UNIX account; systemd makes the folder.
SIGN_IN_SOCKET: Final = "/run/torchyard/sign-in.sock"
#: Not the usual one: a Redis that the distribution has installed listens there, since its package starts it.
REDIS_PORT: Final = 8766
#: The token of a node whose service is on another machine.
NODE_TOKEN: Final = Path("/etc/torchyard/node.token")
WORKER_UNIT: Final = "torchyard-worker.service"
NOLOGIN: Final = "/usr/sbin/nologin"
_UNIT_HEAD: Final = "# Written by `yard install`; `yard doctor` compares it.\n"
_SETTINGS_HEAD: Final = "# docs/settings.md has every setting; `yard config check` checks them.\n"


@dataclass(frozen=True, kw_only=True)
class SystemAccount:
    """A system account that nobody logs in to."""

    name: str
    folder: Path


@dataclass(frozen=True, kw_only=True)
class InstalledFolder:
    """A folder with its mode and owner."""

    path: Path
    mode: int
    owner: str


@dataclass(frozen=True, kw_only=True)
class File:
    """A file with its mode and owner; one that is `kept` is written only where there is none."""

    path: Path
    mode: int
    owner: str
    text: str = field(repr=False)
    kept: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Parts of an installation, in the order in which they are made."""

    accounts: tuple[SystemAccount, ...] = ()
    folders: tuple[InstalledFolder, ...]
    files: tuple[File, ...]
    start: str
    """What is typed afterwards."""

    @property
    def units(self) -> tuple[File, ...]:
        """Units of systemd among the files."""
        return tuple(file for file in self.files if file.path.suffix == ".service")


def machine(python: Path, redis: str, *, account: str = ACCOUNT, prefix: Path = Path("/")) -> Plan:
    """Return the plan of a whole machine, for root; `prefix` stands in the place of ``/`` for files, not in units."""
    own, worker, etc = home.INSTALLED, home.SHARED_WORKER_FOLDER, Path("/etc/torchyard")
    units = prefix / "etc/systemd/system"

    def at(path: Path) -> Path:
        return prefix / path.relative_to("/")

    password = secrets.token_hex(24)
    files = (
        File(
            path=at(own / "redis.conf"),
            mode=0o600,
            owner=account,
            kept=True,
            text=f'bind 127.0.0.1\nport {REDIS_PORT}\nrequirepass {password}\ndir {own}\nsave ""\nappendonly no\n',
        ),
        File(
            path=at(own / "settings.yaml"),
            mode=0o600,
            owner=account,
            kept=True,
            text=f"{_SETTINGS_HEAD}"
            f"service:\n  redis_url: redis://:{password}@127.0.0.1:{REDIS_PORT}/0\n  visibility: project\n"
            f"  # `yard login` on this machine; accounts sign in as the users that an administrator has added.\n"
            f"  sign_in_socket: {SIGN_IN_SOCKET}\n",
        ),
        *_worker_settings(at(etc), "http://127.0.0.1:8765"),
        File(path=units / "torchyard-redis.service", mode=0o644, owner="root", text=_redis_unit(redis, own, account)),
        File(path=units / "torchyard.service", mode=0o644, owner="root", text=_service_unit(python, own, account)),
        _worker_unit(units, python, own / "node.token"),
    )
    return Plan(
        accounts=(SystemAccount(name=account, folder=own),),
        folders=(
            InstalledFolder(path=at(own), mode=0o700, owner=account),
            *_worker_folders(at(worker), at(etc)),
        ),
        files=files,
        start="systemctl daemon-reload && systemctl enable --now torchyard-redis torchyard torchyard-worker",
    )


def node(python: Path, url: str, *, name: str | None = None, prefix: Path = Path("/")) -> Plan:
    """Return the plan of a machine that has the worker of a node alone, for root; its service is at `url`."""
    etc = prefix / "etc/torchyard"
    unit = _worker_unit(prefix / "etc/systemd/system", python, NODE_TOKEN, after="network-online.target")
    return Plan(
        folders=_worker_folders(prefix / home.SHARED_WORKER_FOLDER.relative_to("/"), etc),
        files=(*_worker_settings(etc, url, name), unit),
        start="systemctl daemon-reload && systemctl enable --now torchyard-worker",
    )


def of_machine(python: Path, redis: str, *, prefix: Path = Path("/")) -> Plan:
    """Return the plan by which this machine was installed: of a node where the worker's unit is the only one."""
    units = prefix / "etc/systemd/system"
    if (units / WORKER_UNIT).exists() and not (units / "torchyard.service").exists():
        return node(python, "", prefix=prefix)
    return machine(python, redis, prefix=prefix)


def _worker_folders(worker: Path, etc: Path) -> tuple[InstalledFolder, ...]:
    """Accounts of jobs pass through the first two to their attempts."""
    return (
        InstalledFolder(path=worker, mode=0o711, owner="root"),
        InstalledFolder(path=worker / "attempts", mode=0o711, owner="root"),
        InstalledFolder(path=etc, mode=0o700, owner="root"),
    )


def _worker_settings(etc: Path, url: str, name: str | None = None) -> tuple[File, ...]:
    """Root's own, not the service's: a line of these, `notify_command`, is run as root."""
    variables = f"TORCHYARD_URL={url}\n" + (f"TORCHYARD_NODE={name}\n" if name else "")
    texts = {"worker.env": variables, settingsfile.MACHINE_FILE.name: f"{_SETTINGS_HEAD}worker: {{}}\n"}
    return tuple(File(path=etc / each, mode=0o600, owner="root", kept=True, text=text) for each, text in texts.items())


def person(python: Path, folder: Path, units: Path) -> Plan:
    """Return the plan of a user's own stack, whose home folder is `folder`."""
    owner = home.account_name()
    text = _unit(
        "TorchYard",
        {
            "Type": "exec",
            "Environment": f"TORCHYARD_HOME={folder}",
            "ExecStart": f"{python} -P -m torchyard.cli.main up",
            "ExecReload": f"{python} -P -m torchyard.cli.main config reload",
            "Restart": "on-failure",
            "RestartSec": "2",
            **_JOBS_GO_ON,
        },
        "default.target",
    )
    return Plan(
        folders=(InstalledFolder(path=folder, mode=0o700, owner=owner),),
        files=(
            File(
                path=folder / "settings.yaml",
                mode=0o600,
                owner=owner,
                kept=True,
                text=f"{_SETTINGS_HEAD}service: {{}}\n",
            ),
            File(path=units / "torchyard.service", mode=0o644, owner=owner, text=text),
        ),
        start="systemctl --user daemon-reload && systemctl --user enable --now torchyard && loginctl enable-linger",
    )


_JOBS_GO_ON: Final = {
    "KillMode": "process",
    "OOMPolicy": "continue",
    "Delegate": "yes",
    "DelegateSubgroup": "worker",
    "TasksMax": "infinity",
    "LimitNOFILE": "65536",
}


def _redis_unit(redis: str, own: Path, account: str) -> str:
    service = {
        "Type": "exec",
        "User": account,
        "ExecStart": f"{redis} {own}/redis.conf",
        "Restart": "always",
        "RestartSec": "2",
    }
    return _unit("Redis of TorchYard", service)


def _service_unit(python: Path, own: Path, account: str) -> str:
    service = {
        "Type": "exec",
        "User": account,
        "Environment": f"TORCHYARD_HOME={own}",
        "ExecStart": f"{python} -P -m service",
        "ExecReload": "/bin/kill -HUP $MAINPID",
        "RuntimeDirectory": "torchyard",
        "Restart": "always",
        "RestartSec": "2",
        "NoNewPrivileges": "yes",
        "PrivateTmp": "yes",
        "ProtectSystem": "full",
        "LimitNOFILE": "65536",
    }
    return _unit("TorchYard service", service, after="torchyard-redis.service")


def _worker_unit(units: Path, python: Path, token: Path, after: str = "torchyard.service") -> File:
    words = f"-P -m worker --join ${{TORCHYARD_URL}} --token-file {token} --home {home.SHARED_WORKER_FOLDER}"
    service = {
        "Type": "exec",
        "Environment": f"TORCHYARD_SETTINGS={settingsfile.MACHINE_FILE}",
        "EnvironmentFile": "/etc/torchyard/worker.env",
        "ExecStart": f"{python} {words}",
        "ExecReload": "/bin/kill -HUP $MAINPID",
        "Restart": "always",
        "RestartSec": "2",
        **_JOBS_GO_ON,
        "LimitMEMLOCK": "infinity",
    }
    text = _unit("TorchYard worker", service, after=after)
    return File(path=units / WORKER_UNIT, mode=0o644, owner="root", text=text)


def _unit(what: str, service: dict[str, str], wanted_by: str = "multi-user.target", after: str = "") -> str:
    first = {"Description": what, **({"After": after, "Wants": after} if after else {})}
    parts = {"Unit": first, "Service": service, "Install": {"WantedBy": wanted_by}}
    return _UNIT_HEAD + "\n".join(
        f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in part.items()) for name, part in parts.items()
    )


def steps(plan: Plan) -> list[str]:
    """Return what `apply` does, one line each."""
    made = [f"account {each.name}, without a login, for service and Redis" for each in plan.accounts]
    made += [f"folder {each.path} (mode {each.mode:04o}, owner {each.owner})" for each in plan.folders]
    made += [
        f"file {each.path} (mode {each.mode:04o}, owner {each.owner}){', left as it is' if _is_left(each) else ''}"
        for each in plan.files
    ]
    return made


def apply(plan: Plan) -> None:
    """Make all that the plan consists of; what is there gets its mode and owner, and settings stay as they are."""
    for account in plan.accounts:
        if _uid(account.name) is None:
            _add_account(account)
    for folder in plan.folders:
        folder.path.mkdir(parents=True, exist_ok=True)
        _give(folder)
    for file in plan.files:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        if not _is_left(file):
            home.write_private(file.path, file.text)
        _give(file)


def _is_left(file: File) -> bool:
    return file.kept and file.path.exists()


def _add_account(account: SystemAccount) -> None:
    useradd = shutil.which("useradd")
    if useradd is None:
        raise InstallError(f"useradd is not here: make a system account {account.name} yourself, and try again")
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", str(account.folder), "--shell", NOLOGIN]
    done = subprocess.run([useradd, *options, account.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"the account {account.name} cannot be made: {done.stderr.strip()}")


def _give(what: InstalledFolder | File) -> None:
    uid = _uid(what.owner)
    if uid is None:
        raise InstallError(f"there is no account {what.owner}")
    if what.path.is_symlink():
        raise InstallError(f"{what.path} is a link: remove it, and try again")
    os.chown(what.path, uid, -1)
    what.path.chmod(what.mode)


def _uid(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def is_installed(plan: Plan) -> bool:
    """Return whether any unit of the plan was written here by `yard install`."""
    return any(file.path.is_file() and file.path.read_text().startswith(_UNIT_HEAD) for file in plan.units)


def owner_of(plan: Plan, folder: Path) -> int | None:
    """Return the account that a folder of the plan belongs to; None for another folder, or without that account."""
    return next((_uid(each.owner) for each in plan.folders if each.path == folder), None)


def findings(plan: Plan) -> Iterator[str]:
    """Yield what differs from the plan, each with its mend."""
    for account in plan.accounts:
        yield from _of_account(account)
    everything: list[InstalledFolder | File] = [*plan.folders, *plan.files]
    for what in everything:
        yield from _of_path(what)
    for unit in plan.units:
        if unit.path.is_file():
            yield from _of_unit(unit)


def _of_account(account: SystemAccount) -> Iterator[str]:
    try:
        found = pwd.getpwnam(account.name)
    except KeyError:
        yield f"there is no account {account.name}, as which service and Redis run: `yard install`"
        return
    if found.pw_uid == 0:
        yield f"the account {account.name} is root, so jobs cannot be kept from the service: remove it, `yard install`"
    if not found.pw_shell.endswith(("nologin", "false")):
        yield f"the account {account.name} has a login ({found.pw_shell}): `usermod -s {NOLOGIN} {account.name}`"


def _of_path(what: InstalledFolder | File) -> Iterator[str]:
    kind = "folder" if isinstance(what, InstalledFolder) else "file"
    if not what.path.exists():
        yield f"there is no {kind} {what.path}: `yard install` makes it"
        return
    status = what.path.stat()
    mode, uid = stat.S_IMODE(status.st_mode), _uid(what.owner)
    if mode != what.mode:
        yield f"{what.path} has mode {mode:04o} instead of {what.mode:04o}: `chmod {what.mode:04o} {what.path}`"
    if uid is not None and status.st_uid != uid:
        yield f"{what.path} belongs to {_name(status.st_uid)} instead of {what.owner}: `chown {what.owner} {what.path}`"


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _of_unit(unit: File) -> Iterator[str]:
    try:
        there, wanted = _directives(unit.path.read_text()), _directives(unit.text)
    except configparser.Error as error:
        yield f"{unit.path} is no unit that can be read ({error.message}): `yard install` writes it anew"
        return
    for key, value in wanted.items():
        if key == "ExecStart":
            yield from _of_program(unit.path, there.get(key, ""), value)
        elif there.get(key) != value:
            now = f"is {there[key]}" if key in there else "is missing"
            yield f"{unit.path}: {key} {now} instead of {value}: mend it (`yard install` writes it anew), daemon-reload"


def _of_program(unit: Path, there: str, wanted: str) -> Iterator[str]:
    """The interpreter may be another, if it is there; the arguments may not."""
    words, expected = shlex.split(there), shlex.split(wanted)
    if not words:
        yield f"{unit}: ExecStart is missing: `yard install` writes it anew"
    elif not os.access(words[0], os.X_OK):
        yield f"{unit}: ExecStart names {words[0]}, which is no program that can be run: install TorchYard there"
    elif words[1:] != expected[1:]:
        yield f"{unit}: ExecStart has other arguments than {shlex.join(expected[1:])}: `yard install` writes it anew"


def _directives(text: str) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # how it is told to keep the case
    parser.read_string(text)
    return dict(parser["Service"]) if parser.has_section("Service") else {}


def verified(units: Iterable[File]) -> str:
    """Return what ``systemd-analyze verify`` says against units; empty where it is not installed."""
    program = shutil.which("systemd-analyze")
    if program is None:
        return ""
    paths = [str(unit.path) for unit in units]
    done = subprocess.run([program, "verify", *paths], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""
