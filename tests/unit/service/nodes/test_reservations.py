"""Reservations never claim more than there is, and what can be had is given."""

from hypothesis import given
from hypothesis import strategies as st

from service.nodes.reservations import ReservedResources, conflict

DEVICES = {"a": 4, "b": 2}
ALL = sum(DEVICES.values())


@st.composite
def existing(draw: st.DrawFn) -> ReservedResources:
    start = draw(st.integers(0, 20))
    nodes = draw(st.frozensets(st.sampled_from(sorted(DEVICES))))
    gpus = 0 if nodes else draw(st.integers(1, 8))
    return ReservedResources(
        name="x", starts_us=start, ends_us=start + draw(st.integers(1, 10)), nodes=nodes, gpus=gpus
    )


def reserved(accepted: list[ReservedResources], at: int) -> int:
    held = [resources for resources in accepted if resources.starts_us <= at < resources.ends_us]
    nodes = [node for resources in held for node in resources.nodes]
    assert len(nodes) == len(set(nodes)), "a node is reserved once"
    return sum(resources.gpus for resources in held) + sum(DEVICES[node] for node in nodes)


@given(st.lists(existing(), max_size=12))
def test_at_no_moment_is_more_reserved_than_there_is(wanted: list[ReservedResources]) -> None:
    accepted: list[ReservedResources] = []
    for resources in wanted:
        if conflict(resources, accepted, DEVICES) is None:
            accepted.append(resources)
    assert all(reserved(accepted, at) <= ALL for at in range(32))


@given(st.lists(existing(), max_size=6), existing())
def test_what_fits_beside_the_others_is_not_refused(others: list[ReservedResources], new: ReservedResources) -> None:
    accepted: list[ReservedResources] = []
    for resources in others:
        if conflict(resources, accepted, DEVICES) is None:
            accepted.append(resources)
    span = range(new.starts_us, new.ends_us)
    taken = {node for resources in accepted if resources.overlaps(new) for node in resources.nodes}
    wanted = new.gpus + sum(DEVICES[node] for node in new.nodes)
    fits = not taken & new.nodes and all(reserved(accepted, at) + wanted <= ALL for at in span)
    assert (conflict(new, accepted, DEVICES) is None) == fits


def test_a_clash_says_what_is_free() -> None:
    course = ReservedResources(name="course", starts_us=0, ends_us=10, nodes=frozenset("a"))
    more = ReservedResources(name="more", starts_us=5, ends_us=6, gpus=3)
    assert conflict(more, [course], DEVICES) == (
        "gpus",
        "2 of 6 GPUs are free of reservations from 1970-01-01 00:00 UTC to 1970-01-01 00:00 UTC, not 3",
    )
    told = conflict(more, [course], DEVICES, "cpu")
    assert told is not None
    assert told[1].startswith("2 of 6 CPU slots are free of reservations")
    found = conflict(ReservedResources(name="again", starts_us=9, ends_us=11, nodes=frozenset("a")), [course], DEVICES)
    assert found is not None
    assert found[0] == "nodes"
    assert found[1].startswith("a is reserved for 'course' from ")
    assert (
        conflict(ReservedResources(name="later", starts_us=10, ends_us=11, nodes=frozenset("a")), [course], DEVICES)
        is None
    )
