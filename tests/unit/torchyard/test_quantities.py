import math

import pytest

from torchyard.quantities import MAX_DURATION, MAX_SIZE, format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90),
        (90.0, 90),
        ("90", 90),
        (" 90s ", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2D", 172_800),
        (0, 0),
    ],
)
def test_durations(written: object, seconds: int) -> None:
    assert parse_duration(written) == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [(1024, 1024), (1024.0, 1024), ("512MiB", 2**29), ("16 GB", 16 * 10**9), ("1.5kib", 1536), ("7", 7)],
)
def test_sizes(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize("written", ["", "soon", "1x", True, None, 1.5, math.inf, math.nan, [1], "h1", "-1h"])
def test_what_is_no_duration_is_told_the_forms(written: object) -> None:
    with pytest.raises(ValueError, match=r"not a duration: write seconds, or 90s"):
        parse_duration(written)


@pytest.mark.parametrize("written", ["", "much", "1pib", True, None, [1], "-1"])
def test_what_is_no_size_is_told_the_forms(written: object) -> None:
    with pytest.raises(ValueError, match=r"not a size: write bytes, or 512MiB"):
        parse_size(written)


@pytest.mark.parametrize("written", [-1, MAX_DURATION + 1, 1e300, 10**400, "9" * 400, "9" * 400 + "d", "9" * 5000])
def test_durations_beyond_all_dates_are_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"out of range: a duration is 0 seconds to 36500d") as caught:
        parse_duration(written)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("written", [-1, MAX_SIZE + 1, 10**400, "9" * 400, "9" * 400 + "gib"])
def test_sizes_beyond_all_disks_are_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"out of range: a size is 0 bytes to 1048576TiB"):
        parse_size(written)


def test_they_are_written_as_people_do() -> None:
    assert [format_size(size) for size in (0, 1536, 2**30, 2**60)] == ["0 B", "1.5 KiB", "1.0 GiB", "1048576.0 TiB"]
    assert [format_duration(s) for s in (1.25, 59, 5400, 90_000)] == ["1.2s", "59s", "1h30m", "1d1h"]
