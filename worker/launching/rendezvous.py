"""Rendezvous of several nodes: this node's address, the interface that leads there, and a port.

The first node's address is that of its interface which leads to the service: the other nodes reach the service too, so
most likely they are on that network. A port is taken from below the range that the system gives to outgoing
connections, and is held until just before torchrun binds it: nobody gets it by chance in between.
"""

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from worker.exceptions import NetworkError

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
#: Where ports are looked for; below are those of well-known services.
LOWEST, HIGHEST = 20_000, 65_000
_TRIES = 256
#: Nobody has this address (RFC 5737): the way to it is the default route.
_ANYWHERE = "192.0.2.1"
_LOOPBACK = "127."


@dataclass(frozen=True, kw_only=True)
class NodeRendezvous:
    """One node's place among several, and where their ranks meet."""

    nodes: int
    node_rank: int
    address: str
    port: int
    #: Of this node, towards the first one.
    interface: str | None


def own_address(service: str, interface: str | None) -> str:
    """The address by which other nodes reach this one; `service` is the URL of the service.

    Raises NetworkError when there is none.
    """
    if interface is not None:
        return _address_of(interface)
    found = source_address(urlsplit(service).hostname or _ANYWHERE)
    if found is None or found.startswith(_LOOPBACK):
        found = source_address(_ANYWHERE) or _any_address() or found
    if found is None:
        raise NetworkError
    return found


def default_address(interface: str | None) -> str:
    """Return `own_address` of a node that knows nothing of the service."""
    return own_address("", interface)


def source_address(target: str) -> str | None:
    """The node's own address on the way to another; None without a way. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((target, 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


def interface_towards(target: str) -> str | None:
    """Name of the interface that leads to an address, which may be this node's own."""
    own = source_address(target)
    return next((name for name, address in _addresses() if address == own), None)


def _addresses() -> Iterator[tuple[str, str]]:
    for name, addresses in psutil.net_if_addrs().items():
        yield from ((name, each.address) for each in addresses if each.family == socket.AF_INET)


def _any_address() -> str | None:
    return next((address for _, address in _addresses() if not address.startswith(_LOOPBACK)), None)


def _address_of(interface: str) -> str:
    found = dict(reversed(list(_addresses())))
    if interface not in found:
        raise NetworkError(
            f"resources.network_interface: this node has no interface {interface} with an IPv4 address; "
            f"it has {', '.join(sorted(found)) or 'none'}"
        )
    return found[interface]


@contextmanager
def reserved_port() -> Iterator[int]:
    """A free port that stays bound, but not listening, until the block is left; raises OSError when none is free."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as held:
        yield _bind(held)


def _bind(held: socket.socket) -> int:
    ports = _ports()
    for _ in range(_TRIES - 1):
        port = random.choice(ports)  # noqa: S311 (no secret)
        try:
            held.bind(("", port))
        except OSError:
            continue
        return port
    held.bind(("", random.choice(ports)))  # noqa: S311
    return int(held.getsockname()[1])


def _ports() -> range:
    """Ports outside of the range for outgoing connections, the larger range."""
    try:
        low, high = map(int, _EPHEMERAL.read_text().split())
    except (OSError, ValueError):
        low, high = 32_768, 60_999
    below, above = range(LOWEST, low), range(high + 1, HIGHEST)
    return max(below, above, key=len) or range(LOWEST, HIGHEST)
