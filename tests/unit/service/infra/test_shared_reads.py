"""Reads that many ask for at once: how often they are done, and what each gets."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from service.infra.shared_reads import SharedReads


class Counted:
    """A read that can be held up and counts how often it was done."""

    def __init__(self) -> None:
        self.value = 0
        self.done = 0
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self) -> int:
        found = self.value  # as of its beginning
        self.done += 1
        assert self.gate.wait(60)
        return found


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_who_asks_while_a_read_runs_shares_the_next_one() -> None:
    async def ask() -> None:
        reads, read = SharedReads(lambda: None), Counted()
        read.gate.clear()
        first = asyncio.create_task(reads.get("key", read))
        await _until(lambda: read.done == 1)
        read.value = 7  # they ask after this was written, so they must see it
        others = [asyncio.create_task(reads.get("key", read)) for _ in range(50)]
        await asyncio.sleep(0)
        read.gate.set()
        assert [await first, *await asyncio.gather(*others)] == [0, *[7] * 50]
        assert read.done == 2

    asyncio.run(ask())


def test_what_is_unchanged_is_not_read_again() -> None:
    async def ask() -> None:
        version = 1
        reads, read = SharedReads(lambda: version), Counted()
        assert [await reads.get("key", read) for _ in range(3)] == [0, 0, 0]
        assert read.done == 1
        version, read.value = 2, 5
        assert [await reads.get("key", read) for _ in range(3)] == [5, 5, 5]
        assert (await reads.get("another", read), read.done) == (5, 3)

    asyncio.run(ask())


def test_what_changes_while_it_is_read_is_read_again() -> None:
    async def ask() -> None:
        version = 1
        reads, read = SharedReads(lambda: version), Counted()
        read.gate.clear()
        first = asyncio.create_task(reads.get("key", read))
        await _until(lambda: read.done == 1)
        version, read.value = 2, 5
        read.gate.set()
        assert (await first, await reads.get("key", read)) == (0, 5)

    asyncio.run(ask())


def test_a_problem_is_raised_for_each_by_a_read_of_its_own() -> None:
    async def ask() -> None:
        reads, done = SharedReads(lambda: 1), []
        gate = threading.Event()

        def fail() -> None:
            done.append(1)
            assert gate.wait(60)
            raise KeyError("job")

        asked = [asyncio.create_task(reads.get("key", fail))]
        await _until(lambda: len(done) == 1)
        asked += [asyncio.create_task(reads.get("key", fail)) for _ in range(2)]
        await asyncio.sleep(0)
        gate.set()
        for task in asked:
            with pytest.raises(KeyError):
                await task
        assert len(done) == 3

    asyncio.run(ask())


def test_who_leaves_takes_the_read_from_nobody() -> None:
    async def ask() -> None:
        reads, read = SharedReads(lambda: None), Counted()
        read.gate.clear()
        leaving = asyncio.create_task(reads.get("key", read))
        await _until(lambda: read.done == 1)
        staying = asyncio.create_task(reads.get("key", read))
        await asyncio.sleep(0)
        leaving.cancel()
        read.gate.set()
        assert await staying == 0
        assert leaving.cancelled() or leaving.cancelling()
        assert not reads._running
        assert not reads._next

    asyncio.run(ask())
