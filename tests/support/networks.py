"""Machines of a small network on this one: network namespaces joined by a bridge."""

import contextlib
import random
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Network:
    """The bridge's own address, at which this machine listens, and those of the namespaces by their names."""

    address: str
    machines: dict[str, str]

    def inside(self, machine: str, command: Sequence[str]) -> list[str]:
        """The command, to be run on a machine of the network."""
        return ["nsenter", f"--net=/run/netns/{machine}", *command]


@contextmanager
def network(count: int) -> Iterator[Network]:
    """A network of so many machines; skips the test where there is no right to make one."""
    mark = secrets.token_hex(3)
    subnet = f"10.{random.randrange(192, 255)}.{random.randrange(255)}"
    made = Network(f"{subnet}.1", {f"ty{mark}{n}": f"{subnet}.{n + 2}" for n in range(count)})
    with contextlib.ExitStack() as stack:
        _bridge(f"tyb{mark}", f"{made.address}/24", stack)
        for machine, address in made.machines.items():
            _machine(machine, f"tyb{mark}", f"{address}/24", stack)
        yield made


def _bridge(name: str, address: str, stack: contextlib.ExitStack) -> None:
    tools = all(map(shutil.which, ("ip", "nsenter")))
    add = ["ip", "link", "add", name, "type", "bridge"]
    if not tools or subprocess.run(add, capture_output=True, check=False).returncode:
        pytest.skip("needs root and iproute2, to make a network of its own")
    stack.callback(_ip, "link", "del", name)
    _ip("address", "add", address, "dev", name)
    _ip("link", "set", name, "up")


def _machine(name: str, bridge: str, address: str, stack: contextlib.ExitStack) -> None:
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "del", name)
    _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "set", name, "master", bridge, "up")
    _ip("-n", name, "address", "add", address, "dev", "eth0")
    for device in ("eth0", "lo"):
        _ip("-n", name, "link", "set", device, "up")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
