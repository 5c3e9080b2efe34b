"""Paths below ``TORCHYARD_HOME``, where the embedded stack keeps everything and commands find URL and token."""

import json
import os
import pwd
import re
import socket
from pathlib import Path
from typing import Any, Final

#: Where the attempts of a stack lie that root has started in its own home, which nobody else may enter.
SHARED_WORKER_FOLDER: Final = Path("/var/lib/torchyard-worker")
#: The home that `yard install` makes as root.
INSTALLED: Final = Path("/var/lib/torchyard")
#: The service's unit of that installation.
SERVICE_UNIT: Final = Path("/etc/systemd/system/torchyard.service")


def root() -> Path:
    """Return the home folder: ``TORCHYARD_HOME``, else ``~/.torchyard``; root's is the installed one if it has none."""
    return Path(os.environ.get("TORCHYARD_HOME") or _default()).absolute()


def _default() -> Path:
    installed = os.geteuid() == 0 and not _own().exists() and INSTALLED.exists()
    return INSTALLED if installed else _own()


def _own() -> Path:
    return Path.home() / ".torchyard"


def admin_token_file() -> Path:
    """Return the path of the administrator's token, written 0600 by the service at its first start."""
    return root() / "admin.token"


def node_token_file() -> Path:
    """Return the path of the embedded worker's token, written 0600 by the service at its first start."""
    return root() / "node.token"


def address_file() -> Path:
    """Return the path of ``service.json``, which says where the running service listens."""
    return root() / "service.json"


def login_file() -> Path:
    """Return the path of ``login.json``: the token that `yard login` got by UNIX account, and of which service."""
    return root() / "login.json"


def write_login(url: str, token: str) -> None:
    """Keep a sign-in for later commands."""
    write_private(login_file(), json.dumps({"url": url, "token": token}))


def read_login() -> dict[str, Any] | None:
    """Read the sign-in that was kept; None where there is none."""
    try:
        return dict(json.loads(login_file().read_text()))
    except (OSError, ValueError):
        return None


def node_name() -> str:
    """Return the name of this machine's embedded worker: ``TORCHYARD_NODE``, or the first word of the host's name."""
    name = os.environ.get("TORCHYARD_NODE") or socket.gethostname().partition(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)[:63].strip("-.") or "node"


def start_command() -> str:
    """Return what starts the service of this home: the unit, for whoever uses the one of `yard install`."""
    installed = SERVICE_UNIT.exists() and (root() == INSTALLED or login_file().exists())
    return "systemctl start torchyard" if installed else "yard up"


def account_name() -> str:
    """Return the UNIX account of this process; without a name its number."""
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid_{uid}"


#: File in a worker's folder that says which limits the kernel holds jobs to, or why none.
LIMITS_FILE = "limits.txt"
#: In the worker's folder: locked while it runs, with its process id.
WORKER_LOCK = "worker.lock"
#: In the folder of service or worker: what came of reading its settings anew, for which `yard config reload` waits.
RELOAD_FILE = "reload.json"
#: There as well: hashes of the settings that it has, with which `yard config check` compares the file.
IN_USE_FILE = "settings-in-use.json"


def worker_folder() -> Path:
    """Return the folder of the embedded worker's attempts, caches and spool.

    Root's lies outside of the home: the accounts as which jobs run must reach their attempts, and never database and
    tokens.
    """
    home = root()
    if os.geteuid() != 0:
        return home / "worker"
    return SHARED_WORKER_FOLDER if home == _own() else home.with_name(f"{home.name}-worker")


def log_folder() -> Path:
    """Return the folder of the output of service, worker and Redis."""
    return root() / "logs"


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.replace(path)


def write_address(url: str) -> None:
    """Tell the CLI where the service listens."""
    write_private(address_file(), json.dumps({"url": url, "pid": os.getpid()}))


def remove_address() -> None:
    """Take back what this process has told; another service of the home may have told its own since."""
    if (read_address() or {}).get("pid") == os.getpid():
        address_file().unlink(missing_ok=True)


def remove_ended_address() -> None:
    """Take back what a service has told that ended without doing so; one that still runs goes on being found."""
    if not Path(f"/proc/{(read_address() or {}).get('pid')}").exists():
        address_file().unlink(missing_ok=True)


def read_address() -> dict[str, Any] | None:
    """Read the address of the running service; None where none has run."""
    try:
        return dict(json.loads(address_file().read_text()))
    except (OSError, ValueError):
        return None


def worker_pid() -> int | None:
    """Return the process of the worker that keeps its attempts in `worker_folder`; None if none runs."""
    try:
        pid = int((worker_folder() / WORKER_LOCK).read_text() or 0)
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    return pid if b"worker" in words else None  # else the number has gone to another program since
