"""Keys in what a terminal sends."""

import pytest

from torchyard.cli.top.keys import Keys


@pytest.mark.parametrize(
    ("sent", "names"),
    [
        (b"jk", ["down", "up"]),
        (b"\x1b[A\x1bOB", ["up", "down"]),
        (b"\x1b[1;5Axq", ["leave"]),
        (b"\x1bq\x1a", ["leave", "suspend"]),
    ],
)
@pytest.mark.parametrize("piece", [1, 2, 99])
def test_a_sequence_is_one_key_in_whatever_pieces_it_comes(sent: bytes, names: list[str], piece: int) -> None:
    keys = Keys()
    found = [name for at in range(0, len(sent), piece) for name in keys.feed(sent[at : at + piece])]
    assert found == names
