"""Choice of the CPU cores of a job that asks for some."""

from collections.abc import Collection, Iterable


def parse(words: str) -> frozenset[int]:
    """The cores in a list of the kernel's, such as ``0-3,8``."""
    ranges = (part.partition("-") for part in words.strip().split(",") if part)
    return frozenset(core for low, _, high in ranges for core in range(int(low), int(high or low) + 1))


def write(cores: Iterable[int]) -> str:
    """The list of the kernel's for these cores."""
    return ",".join(map(str, sorted(cores)))


def choose(count: int, available: Collection[int], taken: Iterable[Collection[int]]) -> frozenset[int]:
    """So many of the available cores, those that the fewest jobs have; all of them if there are no more."""
    loads = dict.fromkeys(available, 0)
    for job in taken:
        for core in job:
            if core in loads:
                loads[core] += 1
    return frozenset(sorted(loads, key=lambda core: (loads[core], core))[:count])
