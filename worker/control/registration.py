"""Registration of this node: ids that survive the worker, and facts of the machine."""

import logging
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from torchyard import home, wire
from torchyard.network.login import login, with_login
from torchyard.stack import filesystem
from worker.monitoring import processes

logger = logging.getLogger(__name__)


def kept_id(path: Path) -> str:
    """A random id, made once and kept in a file."""
    try:
        found = path.read_text().strip()
    except FileNotFoundError:
        found = ""
    if not found:
        found = secrets.token_hex(16)
        home.write_private(path, found)
    return found


def identity(folder: Path) -> wire.Identity:
    """Return the node's identity, as of this boot."""
    return wire.Identity(
        node_id=kept_id(folder / "node.id"),
        home_id=kept_id(folder / "home.id"),
        boot_id=processes.boot_id(),
        pid_namespace=processes.pid_namespace(),
    )


def registration(
    name: str,
    who: wire.Identity,
    devices: list[wire.Device],
    labels: Sequence[str] = (),
    capabilities: Sequence[wire.Capability] = (),
    unenforced: wire.Finding | None = None,
) -> wire.Register:
    """The first message to the service."""
    return wire.Register(
        node=name,
        identity=who,
        version=metadata.version("torchyard"),
        hostname=socket.gethostname(),
        devices=devices,
        cpus=len(os.sched_getaffinity(0)),
        memory=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        runs_as_root=os.geteuid() == 0,
        labels=list(labels),
        capabilities=list(capabilities),
        unenforced=None if unenforced is None else unenforced.message,
        unenforced_finding=unenforced,
    )


def broker_url(registered: wire.Registered, own: str | None) -> str:
    """Return the URL of Redis: the node's own setting, with the login that the service told if that names none."""
    if own is None:
        return registered.broker_url
    return own if login(own) else with_login(own, login(registered.broker_url))


def disk_free(folder: Path) -> int:
    """Bytes that are free for the attempts: none where their folder takes no new file. Raises OSError if it is away:
    then an inventory proves nothing either.
    """
    status = os.statvfs(folder)
    error = filesystem.refusal(folder)
    if error is None:
        return status.f_bavail * status.f_frsize
    logger.warning("no attempt can start here: %s", error)
    return 0


class Registration:
    """The service's answer, kept in a file so that a worker starts with the service down too."""

    def __init__(self, path: Path, ask: Callable[[], wire.Registered]) -> None:
        self._path = path
        self._ask = ask

    def cached(self) -> wire.Registered | None:
        """Return the service's last answer; None if this home has never been registered."""
        try:
            return wire.Registered.model_validate_json(self._path.read_bytes())
        except (OSError, ValueError):
            return None

    def renew(self) -> wire.Registered:
        """Ask the service now; raise `UnavailableError` or `RequestRefusedError`."""
        answer = self._ask()
        if answer != self.cached():
            try:
                home.write_private(self._path, answer.model_dump_json())
            except OSError as error:
                logger.warning("the registration cannot be kept for a start without the service: %s", error)
        return answer
