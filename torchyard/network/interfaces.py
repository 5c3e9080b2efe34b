"""The network interface that leads to the other nodes of a job.

Without it gloo takes the address that the host's own name resolves to, often loopback, and NCCL the first interface
that is up, often a container bridge.
"""

import socket
from collections.abc import Mapping

import psutil

GLOO = "GLOO_SOCKET_IFNAME"
NCCL = "NCCL_SOCKET_IFNAME"


def interface_to(host: str, port: int = 9) -> str | None:
    """The name of the interface on the route to a host; nothing is sent. None for loopback, or when there is no route.

    A host that is this node itself has the interface that bears its address.
    """
    address = _local_address(host, port)
    if address is None:
        return None
    return next((name for name, own in _addresses() if own == address and not _is_loopback(address)), None)


def settings(interface: str) -> dict[str, str]:
    """The environment variables that keep gloo and NCCL to one interface."""
    # NCCL takes a bare name as the beginning of one: eth1 would match eth10.
    return {GLOO: interface, NCCL: f"={interface}"}


def found(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings for a rank's environment that are still missing there, by the route to MASTER_ADDR.

    Empty when all ranks are on this node, or when the interface cannot be told.
    """
    host = environment.get("MASTER_ADDR")
    on_one_node = environment.get("LOCAL_WORLD_SIZE") == environment.get("WORLD_SIZE", "1")
    if not host or on_one_node or (interface := interface_to(host)) is None:
        return {}
    return {name: value for name, value in settings(interface).items() if name not in environment}


def _local_address(host: str, port: int) -> str | None:
    """The address that packets to a host would come from."""
    try:
        routes = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except OSError:
        return None
    for family, kind, protocol, _, target in routes:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(target)
                return str(probe.getsockname()[0])
        except OSError:
            continue
    return None


def _addresses() -> list[tuple[str, str]]:
    """Each interface with each of its addresses, without an IPv6 zone."""
    return [(name, one.address.partition("%")[0]) for name, all_ in psutil.net_if_addrs().items() for one in all_]


def _is_loopback(address: str) -> bool:
    return address == "::1" or address.startswith("127.")
