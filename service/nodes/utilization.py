"""Use of all devices over time, as the lanes show it: a few samples of each bucket are read, not all."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from sqlalchemy import Connection, func, select
from sqlalchemy.orm import aliased

from service.db.engine import Database
from service.db.models import Sample
from service.db.records.nodes import DeviceRecord, NodeRecord
from service.infra.times import moment
from service.nodes import listing
from torchyard import api
from torchyard.wire import DeviceKind

#: Buckets of an answer: more than a lane of a usual screen shows apart.
BUCKETS = 180
#: Samples that are read of a bucket at most.
SAMPLES = 8
#: An answer is given again until the clock has gone on by so much of a bucket.
SHARE_KEPT = 4
HOUR_S = 3600
SECOND_US = 1_000_000


@dataclass(frozen=True, kw_only=True)
class TimeBuckets:
    """Equal buckets of time; the last one holds the present."""

    since_us: int
    width_us: int

    @classmethod
    def until(cls, now: int, hours: int) -> "TimeBuckets":
        """Return the buckets of the last hours. They begin at multiples of their width, so that most of them stay."""
        width_us = hours * HOUR_S * SECOND_US // BUCKETS
        return cls(since_us=(now // width_us - BUCKETS) * width_us, width_us=width_us)

    def means(self, points: Iterable[tuple[int, float | None]]) -> list[int | None]:
        """Return the mean of each bucket, rounded; None where no point has a value."""
        known = [(time_us, value) for time_us, value in points if value is not None]
        places = (np.array([time_us for time_us, _ in known], np.int64) - self.since_us) // self.width_us
        inside = (places >= 0) & (places <= BUCKETS)
        values = np.array([value for _, value in known], np.float64)[inside]
        counts = np.bincount(places[inside], minlength=BUCKETS + 1)
        sums = np.bincount(places[inside], values, BUCKETS + 1)
        return [round(total / count) if count else None for total, count in zip(sums.tolist(), counts, strict=True)]


@dataclass
class UtilizationCache:
    """The last answer for each span of time, which all who look share; one thread makes it."""

    _known: dict[int, tuple[int, api.Utilization]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def load(self, db: Database, now: int, hours: int) -> api.Utilization:
        """Return how busy all devices were in the last hours."""
        buckets = TimeBuckets.until(now, hours)
        tick = now // (buckets.width_us // SHARE_KEPT)
        with self._lock:
            known = self._known.get(hours)
            if known is None or known[0] != tick:
                known = self._known[hours] = tick, _load(db, buckets)
            return known[1]


def _load(db: Database, buckets: TimeBuckets) -> api.Utilization:
    with db.read() as tx:
        return api.Utilization(
            since=moment(buckets.since_us),
            bucket_s=buckets.width_us // SECOND_US,
            devices=[
                each
                for node, devices in listing.with_devices(tx)
                for each in _of_node(node, devices, samples(tx, node.name, buckets), buckets)
            ],
        )


def samples(tx: Connection, node: str, buckets: TimeBuckets) -> Sequence[tuple[int, Mapping[str, float]]]:
    """Return samples of a node with at least a bucket's `SAMPLES`-th between them, each found by the index."""
    other = aliased(Sample)
    own = (Sample.node == node, Sample.attempt_id == "")
    first = select(func.min(Sample.time_us).label("at")).where(*own, Sample.time_us >= buckets.since_us)
    chosen = first.cte("chosen", recursive=True)
    step = buckets.width_us // SAMPLES
    later = select(func.min(other.time_us)).where(
        other.node == node, other.attempt_id == "", other.time_us >= chosen.c.at + step
    )
    chosen = chosen.union_all(select(later.scalar_subquery()).where(chosen.c.at.is_not(None)))
    query = select(Sample.time_us, Sample.values.label("sampled")).join(chosen, chosen.c.at == Sample.time_us)
    return [(row.time_us, row.sampled) for row in tx.execute(query.where(*own))]


def _of_node(
    node: NodeRecord,
    devices: Iterable[DeviceRecord],
    samples: Sequence[tuple[int, Mapping[str, float]]],
    buckets: TimeBuckets,
) -> Iterable[api.DeviceUtilization]:
    """Yield the use of a node's devices; of CPU slots nothing but the node's own is known."""

    def means(name: str, whole: float = 100) -> list[int | None]:
        return buckets.means((at, _percent(values.get(name), whole)) for at, values in samples)

    for device in devices:
        is_slot = device.kind is DeviceKind.CPU_SLOT
        series = f"{device.kind}.{device.index}"
        yield api.DeviceUtilization(
            node=node.name,
            uuid=device.uuid,
            of_node=is_slot,
            utilization=means("cpu.percent" if is_slot else f"{series}.utilization"),
            memory=means("memory.used", node.memory) if is_slot else means(f"{series}.memory_used", device.memory),
        )


def _percent(value: float | None, whole: float) -> float | None:
    return None if value is None or not whole else min(100.0, 100 * value / whole)
