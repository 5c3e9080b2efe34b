import random
import struct

import pytest

from tests.support import events
from torchyard.export.crc32c import crc32c
from worker.trackers import tensorboard
from worker.trackers.points import Chunk, TrackerPoint


def read(data: bytes, at: int = 0, *, ended: bool = False) -> tuple[list[TrackerPoint], int, int]:
    """Points, end and skipped records of a file from a place on."""
    found = tensorboard.read(Chunk(data=data[at:], at=at, size=len(data), ended=ended), 100_000)
    return found.points, found.end, found.skipped


def test_the_checksum_is_the_standard_one() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_scalars_are_read() -> None:
    data = events.file([events.scalar("train/loss", 0.5, 3, 1.5), events.scalar("train/loss", float("inf"), -1, 2.0)])
    points, end, skipped = read(data)
    assert [(point.step, point.time_us, point.values) for point in points] == [
        (3, 1_500_000, {"train/loss": 0.5}),
        (-1, 2_000_000, {"train/loss": float("inf")}),
    ]
    assert (end, skipped) == (len(data), 0)


@pytest.mark.parametrize(("kind", "form", "value"), [(1, "<f", 0.25), (2, "<d", 0.1), (3, "<i", -7), (9, "<q", 2**40)])
def test_scalar_tensors_are_read(kind: int, form: str, value: float) -> None:
    data = events.file([events.tensor("loss", kind, struct.pack(form, value), 1)])
    assert [point.values for point in read(data)[0]] == [{"loss": value}]


def test_what_is_no_scalar_is_passed_over() -> None:
    image = events.tensor("picture", 7, b"x" * 5000, 1, plugin="images")
    data = events.file([image, events.scalar("loss", 1.0, 2)])
    points, end, skipped = read(data)
    assert [point.step for point in points] == [2]
    assert (end, skipped) == (len(data), 0)


def test_a_record_larger_than_a_chunk_is_stepped_over() -> None:
    large = events.record(events.tensor("picture", 7, b"x" * 5000, 1, plugin="images"))
    data = large + events.record(events.scalar("loss", 1.0, 2))
    first = tensorboard.read(Chunk(data=data[:1000], at=0, size=len(data)), 10)
    assert (first.points, first.end, first.skipped) == ([], len(large), 0)


def test_however_the_file_grows_each_point_is_read_once() -> None:
    data = events.file([events.scalar(f"tag/{n % 7}", n / 3, n) for n in range(200)])
    whole = read(data)[0]
    chance = random.Random(5)
    found: list[TrackerPoint] = []
    at = size = 0
    while at < len(data):
        size = min(len(data), size + chance.randrange(1, 90))
        points, at, skipped = read(data[:size], at)
        found += points
        assert skipped == 0
    assert found == whole


def test_a_torn_record_waits_until_nobody_writes_any_more() -> None:
    data = events.file([events.scalar("loss", 1.0, 1), events.scalar("loss", 2.0, 2)])
    torn = data[:-3]
    points, end, skipped = read(torn)
    assert ([point.step for point in points], skipped) == ([1], 0)
    assert read(torn, end) == ([], end, 0)
    assert read(torn, end, ended=True) == ([], len(torn), 1)


@pytest.mark.parametrize("place", [0, 8, 14, 40])
def test_a_damaged_record_is_counted_and_the_next_is_read(place: int) -> None:
    first = events.record(events.scalar("loss", 1.0, 1))
    data = bytearray(first + events.file([events.scalar("loss", 2.0, 2)]))
    data[min(place, len(first) - 1)] ^= 0xFF
    points, end, skipped = read(bytes(data))
    assert [point.step for point in points] == [2]
    assert end == len(data)
    assert skipped >= 1


def test_noise_is_no_point() -> None:
    chance = random.Random(3)
    for size in range(0, 400, 7):
        points, end, _ = read(chance.randbytes(size), ended=True)
        assert (points, end) == ([], size)


def test_noise_in_a_whole_record_is_counted() -> None:
    chance = random.Random(4)
    for size in range(1, 200):
        _, end, _ = read(events.record(chance.randbytes(size)))
        assert end == size + 16
