import pytest

from service.api import static


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("", {""}),
        ("gzip, deflate, br, zstd", {"gzip", "deflate", "br", "zstd"}),
        ("GZIP;q=0.5, br; q=0", {"gzip"}),
        ("br;q=0.000,gzip ; q=1", {"gzip"}),
        ("br;q=0.001", {"br"}),
    ],
)
def test_encodings_that_are_not_refused(header: str, taken: set[str]) -> None:
    assert static.accepted(header) == taken
