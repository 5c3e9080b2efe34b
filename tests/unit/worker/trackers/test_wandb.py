import json
import math
import random
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.support.events import field, varint
from worker.trackers import wandb
from worker.trackers.points import Chunk, TrackerPoint

BLOCK = 32768


def log(records: Iterable[bytes]) -> bytes:
    """A file as W&B writes it."""
    data = bytearray(b":W&B\x26\xe1\x00")
    for record in records:
        _add(data, record)
    return bytes(data)


def _add(data: bytearray, record: bytes) -> None:
    first = True
    while True:
        left = BLOCK - len(data) % BLOCK
        if left < 7:
            data += bytes(left)
            left = BLOCK
        piece, record = record[: left - 7], record[left - 7 :]
        kind = (1 if first else 4) if not record else (2 if first else 3)
        data += struct.pack("<IHB", zlib.crc32(piece, zlib.crc32(bytes([kind]))), len(piece), kind) + piece
        if not record:
            return
        first = False


def history(values: Mapping[str, Any], step: int, time_s: float = 1.5) -> bytes:
    own = {"_step": step, "_timestamp": time_s, "_runtime": 1}
    items = (
        field(2, name.encode()) + field(16, json.dumps(value).encode()) for name, value in {**values, **own}.items()
    )
    content = b"".join(field(1, item) for item in items) + field(2, b"\x08" + varint(step))
    return b"\x08\x01" + field(2, content)


def read(data: bytes, at: int = 0, *, ended: bool = False) -> tuple[list[TrackerPoint], int, int]:
    """Points, end and skipped records of a file from a place on."""
    found = wandb.read(Chunk(data=data[at:], at=at, size=len(data), ended=ended), 100_000)
    return found.points, found.end, found.skipped


def test_history_is_read() -> None:
    data = log([field(17, b"no history"), history({"loss": 0.5, "text": "no", "n": {"a": 1}, "ok": True}, 4)])
    points, end, skipped = read(data)
    assert [(point.step, point.time_us, point.values) for point in points] == [
        (4, 1_500_000, {"loss": 0.5, "n.a": 1.0, "ok": 1.0})
    ]
    assert (end, skipped) == (len(data), 0)


def test_a_framework_tells_the_training_step() -> None:
    data = log([history({"loss": 1.0, "trainer/global_step": 70}, 3)])
    assert [point.step for point in read(data)[0]] == [70]


def test_media_are_no_numbers() -> None:
    data = log([history({"picture": {"_type": "image-file", "width": 3}, "loss": 1}, 0)])
    assert [point.values for point in read(data)[0]] == [{"loss": 1.0}]


def test_however_the_file_grows_each_point_is_read_once() -> None:
    chance = random.Random(7)
    records = [history({f"tag {n % 5}": n / 3, "pad": "x" * chance.randrange(3000)}, n) for n in range(150)]
    records.insert(50, field(5, b"y" * 3 * BLOCK))
    data = log(records)
    whole = read(data)[0]
    assert [point.step for point in whole] == list(range(150))
    found: list[TrackerPoint] = []
    at = size = 0
    while at < len(data):
        size = min(len(data), size + chance.randrange(1, 9000))
        points, at, skipped = read(data[:size], at)
        found += points
        assert skipped == 0
    assert found == whole


def test_a_torn_record_waits_until_nobody_writes_any_more() -> None:
    data = log([history({"loss": 1}, 1), history({"loss": 2}, 2)])[:-3]
    points, end, skipped = read(data)
    assert ([point.step for point in points], skipped) == ([1], 0)
    assert read(data, end, ended=True) == ([], len(data), 1)


@pytest.mark.parametrize("place", [7, 11, 13, 20])
def test_a_damaged_piece_is_counted_and_what_follows_is_read(place: int) -> None:
    data = bytearray(log([history({"loss": n, "pad": "x" * 900}, n) for n in range(100)]))
    data[place] ^= 0xFF
    points, end, skipped = read(bytes(data))
    assert end == len(data)
    assert skipped >= 1
    assert [point.step for point in points][-1] == 99


def test_a_record_beyond_all_sizes_is_stepped_over() -> None:
    data = log([field(5, b"y" * 40 * BLOCK), history({"loss": 1}, 1)])
    at, found = 0, list[TrackerPoint]()
    while at < len(data):
        some = wandb.read(Chunk(data=data[at : at + 2**19], at=at, size=len(data)), 100_000)
        assert some.end > at
        found, at = found + some.points, some.end
    assert [point.step for point in found] == [1]


@pytest.mark.parametrize("time_s", [math.inf, -math.inf, math.nan, 10**400])
def test_a_time_beyond_all_numbers_is_no_point(time_s: float) -> None:
    assert read(log([history({"loss": 1}, 1, time_s), history({"loss": 2}, 2)]))[2] == 1


def test_values_that_are_nested_too_deeply_are_no_point() -> None:
    deep = b"[" * 100_000
    record = b"\x08\x01" + field(2, field(1, field(2, b"deep") + field(16, deep)))
    assert read(log([record, history({"loss": 2}, 2)]))[2] == 1


def test_noise_is_no_point() -> None:
    chance = random.Random(3)
    for size in range(0, 400, 7):
        points, end, _ = read(chance.randbytes(size), ended=True)
        assert (points, end) == ([], size)
