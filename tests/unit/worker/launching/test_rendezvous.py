import socket

import pytest

from worker.exceptions import NetworkError
from worker.launching import rendezvous


def test_the_way_to_this_machine_is_the_loopback() -> None:
    assert rendezvous.source_address("127.0.0.1") == "127.0.0.1"
    assert rendezvous.interface_towards("127.0.0.1") == "lo"
    assert rendezvous.own_address("http://127.0.0.1:8765", "lo") == "127.0.0.1"


def test_a_service_on_this_machine_does_not_make_others_look_for_us_on_theirs() -> None:
    others = [address for _, address in rendezvous._addresses() if not address.startswith("127.")]
    found = rendezvous.own_address("http://127.0.0.1:8765", None)
    assert found in others or (not others and found == "127.0.0.1")


def test_an_interface_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(NetworkError, match=r"resources.network_interface: .* no interface ib7 .* it has .*lo"):
        rendezvous.own_address("http://127.0.0.1:8765", "ib7")


def test_a_reserved_port_is_nobodys_until_it_is_let_go() -> None:
    with rendezvous.reserved_port() as port, rendezvous.reserved_port() as other:
        assert port != other
        assert port >= rendezvous.LOWEST
        low, high = map(int, rendezvous._EPHEMERAL.read_text().split())
        assert not low <= port <= high
        with socket.socket() as rival:
            rival.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                rival.bind(("", port))
    with socket.socket() as store:
        store.bind(("", port))
