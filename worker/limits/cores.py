"""Choice of the CPU cores of a job that asks for some."""

from collections.abc import Collection, Iterable, Mapping


def parse(words: str) -> frozenset[int]:
    """The cores in a list of the kernel's, such as ``0-3,8``."""
    ranges = (part.partition("-") for part in words.strip().split(",") if part)
    return frozenset(core for low, _, high in ranges for core in range(int(low), int(high or low) + 1))


def write(cores: Iterable[int]) -> str:
    """The list of the kernel's for these cores."""
    return ",".join(map(str, sorted(cores)))


def choose(
    count: int,
    available: Collection[int],
    taken: Iterable[Collection[int]],
    nodes: Mapping[int, int] | None = None,
    near: Collection[int] = (),
) -> frozenset[int]:
    """So many of the available cores, those that the fewest jobs have; all of them if there are no more.

    Of equals those of the NUMA nodes `near` come first, then those of one node; `nodes` has the node of each core.
    """
    nodes = nodes or {}
    loads = dict.fromkeys(available, 0)
    for job in taken:
        for core in job:
            if core in loads:
                loads[core] += 1

    def order(core: int) -> tuple[int, bool, int, int]:
        node = nodes.get(core, 0)
        return loads[core], node not in near, node, core

    return frozenset(sorted(loads, key=order)[:count])
