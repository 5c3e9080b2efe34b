import socket

import psutil
import pytest

from torchyard.network import interfaces


def own_addresses() -> list[tuple[str, str]]:
    return [
        (name, one.address)
        for name, all_ in psutil.net_if_addrs().items()
        for one in all_
        if one.family is socket.AF_INET and not one.address.startswith("127.")
    ]


def test_loopback_and_the_unknown_have_no_interface() -> None:
    assert interfaces.interface_to("127.0.0.1") is None
    assert interfaces.interface_to("localhost") is None
    assert interfaces.interface_to("no-such-host.invalid") is None


def test_an_own_address_has_the_interface_that_bears_it() -> None:
    for name, address in own_addresses():
        assert interfaces.interface_to(address) == name


def test_a_job_of_two_nodes_is_kept_to_the_route(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interfaces, "interface_to", {"10.0.0.1": "eth1"}.get)
    two_nodes = {"MASTER_ADDR": "10.0.0.1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}
    assert interfaces.found(two_nodes) == {"GLOO_SOCKET_IFNAME": "eth1", "NCCL_SOCKET_IFNAME": "=eth1"}
    assert interfaces.found({**two_nodes, "GLOO_SOCKET_IFNAME": "ib0"}) == {"NCCL_SOCKET_IFNAME": "=eth1"}
    assert interfaces.found({**two_nodes, "MASTER_ADDR": "127.0.0.1"}) == {}


def test_ranks_of_one_node_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interfaces, "interface_to", lambda _host: "eth1")
    assert interfaces.found({"MASTER_ADDR": "10.0.0.1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}) == {}
    assert interfaces.found({}) == {}
