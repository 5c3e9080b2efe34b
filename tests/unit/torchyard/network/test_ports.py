import socket

import pytest

from torchyard.network import ports


def test_a_held_port_is_one_programs_even_while_that_does_not_run() -> None:
    with ports.held("127.0.0.1") as port:
        place = ("127.0.0.1", port)
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(place)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(place, timeout=5)
        for _ in range(2):
            with socket.create_server(place):
                socket.create_connection(place, timeout=5).close()
                with pytest.raises(OSError, match="in use"), ports.held(*place):
                    pass
