"""Means of parts of the time."""

from service.nodes.utilization import PARTS, Parts

HOUR_US = 3600 * 1_000_000
NOW = 1_000 * HOUR_US + 12_345_678


def test_parts_reach_back_as_asked_and_stay_while_time_passes() -> None:
    parts = Parts.until(NOW, 1)
    assert parts.width_us * PARTS == HOUR_US
    assert parts.since_us <= NOW - HOUR_US + parts.width_us
    assert parts.since_us + PARTS * parts.width_us <= NOW < parts.since_us + (PARTS + 1) * parts.width_us
    later = Parts.until(NOW + 3 * parts.width_us, 1)
    assert (later.since_us - parts.since_us) == 3 * parts.width_us


def test_a_part_has_the_mean_of_what_is_known_and_nothing_where_nothing_is() -> None:
    parts = Parts.until(NOW, 1)
    first, last = parts.since_us, parts.since_us + PARTS * parts.width_us
    means = parts.means([(first, 0.0), (last, 50.0), (last + 1, 75.0), (last + 2, None), (first - 1, 99.0)])
    assert means == [0, *[None] * (PARTS - 1), 62]
    assert parts.means([]) == [None] * (PARTS + 1)
