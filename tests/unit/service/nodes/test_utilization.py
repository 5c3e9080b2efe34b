"""Means of buckets of the time."""

from service.nodes.utilization import BUCKETS, TimeBuckets

HOUR_US = 3600 * 1_000_000
NOW = 1_000 * HOUR_US + 12_345_678


def test_buckets_reach_back_as_asked_and_stay_while_time_passes() -> None:
    buckets = TimeBuckets.until(NOW, 1)
    assert buckets.width_us * BUCKETS == HOUR_US
    assert buckets.since_us <= NOW - HOUR_US + buckets.width_us
    assert buckets.since_us + BUCKETS * buckets.width_us <= NOW < buckets.since_us + (BUCKETS + 1) * buckets.width_us
    later = TimeBuckets.until(NOW + 3 * buckets.width_us, 1)
    assert (later.since_us - buckets.since_us) == 3 * buckets.width_us


def test_a_bucket_has_the_mean_of_what_is_known_and_nothing_where_nothing_is() -> None:
    buckets = TimeBuckets.until(NOW, 1)
    first, last = buckets.since_us, buckets.since_us + BUCKETS * buckets.width_us
    means = buckets.means([(first, 0.0), (last, 50.0), (last + 1, 75.0), (last + 2, None), (first - 1, 99.0)])
    assert means == [0, *[None] * (BUCKETS - 1), 62]
    assert buckets.means([]) == [None] * (BUCKETS + 1)
