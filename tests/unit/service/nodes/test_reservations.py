"""Reservations never claim more than there is, and what can be had is given."""

from hypothesis import given
from hypothesis import strategies as st

from service.nodes.reservations import Claim, clash

DEVICES = {"a": 4, "b": 2}
ALL = sum(DEVICES.values())


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    start = draw(st.integers(0, 20))
    nodes = draw(st.frozensets(st.sampled_from(sorted(DEVICES))))
    gpus = 0 if nodes else draw(st.integers(1, 8))
    return Claim(name="x", starts_us=start, ends_us=start + draw(st.integers(1, 10)), nodes=nodes, gpus=gpus)


def claimed(accepted: list[Claim], at: int) -> int:
    held = [claim for claim in accepted if claim.starts_us <= at < claim.ends_us]
    nodes = [node for claim in held for node in claim.nodes]
    assert len(nodes) == len(set(nodes)), "a node is reserved once"
    return sum(claim.gpus for claim in held) + sum(DEVICES[node] for node in nodes)


@given(st.lists(claims(), max_size=12))
def test_at_no_moment_is_more_reserved_than_there_is(wanted: list[Claim]) -> None:
    accepted: list[Claim] = []
    for claim in wanted:
        if clash(claim, accepted, DEVICES) is None:
            accepted.append(claim)
    assert all(claimed(accepted, at) <= ALL for at in range(32))


@given(st.lists(claims(), max_size=6), claims())
def test_what_fits_beside_the_others_is_not_refused(others: list[Claim], new: Claim) -> None:
    accepted: list[Claim] = []
    for claim in others:
        if clash(claim, accepted, DEVICES) is None:
            accepted.append(claim)
    span = range(new.starts_us, new.ends_us)
    taken = {node for claim in accepted if claim.meets(new) for node in claim.nodes}
    wanted = new.gpus + sum(DEVICES[node] for node in new.nodes)
    fits = not taken & new.nodes and all(claimed(accepted, at) + wanted <= ALL for at in span)
    assert (clash(new, accepted, DEVICES) is None) == fits


def test_a_clash_says_what_is_free() -> None:
    course = Claim(name="course", starts_us=0, ends_us=10, nodes=frozenset("a"))
    more = Claim(name="more", starts_us=5, ends_us=6, gpus=3)
    assert clash(more, [course], DEVICES) == (
        "gpus",
        "3 are asked for, and 2 of 6 GPUs are free of reservations from 1970-01-01 00:00 to 1970-01-01 00:00 UTC",
    )
    found = clash(Claim(name="again", starts_us=9, ends_us=11, nodes=frozenset("a")), [course], DEVICES)
    assert found is not None
    assert found[0] == "nodes"
    assert found[1].startswith("a is reserved for 'course' from ")
    assert clash(Claim(name="later", starts_us=10, ends_us=11, nodes=frozenset("a")), [course], DEVICES) is None
