from service.lifecycle.links import MeasuredLink, advice
from torchyard.network import speed

MEASURED = 1_700_000_000_000_000


def link(a: str, b: str, rate: float) -> MeasuredLink:
    return MeasuredLink(a=a, b=b, rate=rate, measured_us=MEASURED)


def test_nothing_known_is_no_advice() -> None:
    assert advice([]) is None


def test_a_quick_network_is_told_and_not_warned_of() -> None:
    assert advice([link("a", "b", 12.5e9)]) == (
        "the network between a and b moved 12.5 GB/s at 2023-11-14 22:13 UTC: each 100 MB that a rank sends in a step "
        "take 8 ms; ranks of one node need no network"
    )


def test_the_slowest_pair_is_the_one_to_reckon_with() -> None:
    told = advice([link("a", "c", 50e6), link("a", "b", 12.5e9)])
    assert told is not None
    assert told.startswith("the network between a and c, the slowest of 2 measured pairs, moved 50 MB/s")
    assert "take 2.0 s;" in told
    assert told.endswith(f"That is slow. {speed.MENDS}")
