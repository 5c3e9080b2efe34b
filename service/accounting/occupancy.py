"""Devices that attempts hold or held, and when they were idle there by the samples of their nodes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, Select, and_, bindparam, case, func, select

from service.accounting import gpu_time
from service.accounting.gpu_time import DeviceOccupancy
from service.db.chunks import chunks
from service.db.models import Allocation, Device, Sample
from service.db.records.record import Record
from torchyard.ids import AttemptId

#: How often nodes send samples, in microseconds.
SAMPLED_EVERY_US = 2_000_000


@dataclass(frozen=True, slots=True)
class _AllocatedDevice(Record):
    """A device that an attempt holds or held."""

    attempt_id: AttemptId
    node: str
    index: int
    created_us: int
    released_us: int | None
    share: int | None
    memory: int
    kind: str


@dataclass(frozen=True, slots=True)
class _SampledBucket(Record):
    """The newest sample in a bucket of time, `width` microseconds wide."""

    attempt_id: AttemptId
    node: str
    number: int
    width: int
    sampled: Mapping[str, float] | None


_DEVICES = (
    select(
        Allocation.attempt_id,
        Allocation.node,
        Allocation.index,
        Allocation.created_us,
        Allocation.released_us,
        Allocation.share,
        Device.memory,
        Device.kind,
    )
    .join(Device, and_(Device.node == Allocation.node, Device.uuid == Allocation.uuid))
    .where(Allocation.attempt_id.in_(bindparam("attempts", expanding=True)))
    .order_by(Allocation.attempt_id, Allocation.node, Allocation.index)
)


def load(
    tx: Connection, attempts: Sequence[AttemptId], now: int, samples: int
) -> dict[AttemptId, list[DeviceOccupancy]]:
    """Return the devices of the attempts, by attempt id, and when they were idle, as far as the samples tell.

    `samples` are read of each attempt on each of its nodes at most; 0: all of the time counts as used.
    """
    found: defaultdict[AttemptId, list[DeviceOccupancy]] = defaultdict(list)
    for some in chunks(attempts):
        seen = _seen(tx, some, now, samples) if samples else {}
        for device in _AllocatedDevice.each(tx.execute(_DEVICES, {"attempts": some})):
            found[device.attempt_id].append(_occupancy(device, seen.get((device.attempt_id, device.node), ()), now))
    return found


def _occupancy(device: _AllocatedDevice, buckets: Sequence[_SampledBucket], now: int) -> DeviceOccupancy:
    series = f"{device.kind}.{device.index}.utilization"
    known = [(each.number, busy) for each in buckets if (busy := (each.sampled or {}).get(series)) is not None]
    shared = device.share is not None and device.memory > 0
    return DeviceOccupancy(
        node=device.node,
        since_us=device.created_us,
        until_us=now if device.released_us is None else device.released_us,
        share=min(device.share or 0, device.memory) if shared else 1,
        of=device.memory if shared else 1,
        idle=gpu_time.idle_spans(known, buckets[0].width) if known else (),
    )


def _seen(
    tx: Connection, attempts: Sequence[AttemptId], now: int, samples: int
) -> Mapping[tuple[str, str], Sequence[_SampledBucket]]:
    """Return the newest sample of each bucket of time that has one, by attempt and node."""
    found: defaultdict[tuple[str, str], list[_SampledBucket]] = defaultdict(list)
    asked = {"attempts": attempts, "now": now, "samples": samples}
    for sample in _SampledBucket.each(tx.execute(_NEWEST_SAMPLES, asked)):
        if sample.sampled is not None:
            found[sample.attempt_id, sample.node].append(sample)
    return found


def _newest_samples() -> Select[Any]:
    """Return the query for the samples of attempts on their nodes: the newest of each bucket of time.

    One look into the index for each bucket, `width` microseconds wide: a long run has hundreds of thousands of samples.
    """
    until_us = func.coalesce(Allocation.released_us, bindparam("now", type_=BigInteger()))
    since, until = func.min(Allocation.created_us), func.max(until_us)
    span = (
        select(Allocation.attempt_id, Allocation.node, since.label("since"), until.label("until"))
        .where(Allocation.attempt_id.in_(bindparam("attempts", expanding=True)))
        .group_by(Allocation.attempt_id, Allocation.node)
        .cte("span")
    )
    fair = (span.c.until - span.c.since) // bindparam("samples", type_=Integer())
    width = case((fair > SAMPLED_EVERY_US, fair), else_=SAMPLED_EVERY_US)
    first, last = (span.c.since // width).label("number"), (span.c.until // width).label("last")
    columns = (span.c.attempt_id, span.c.node, width.label("width"), last)
    bucket = select(*columns, first).cte("bucket", recursive=True)
    following = (bucket.c.attempt_id, bucket.c.node, bucket.c.width, bucket.c.last, bucket.c.number + 1)
    bucket = bucket.union_all(select(*following).where(bucket.c.number < bucket.c.last))
    begins = bucket.c.number * bucket.c.width
    newest = (
        select(Sample.values)
        .where(Sample.node == bucket.c.node, Sample.attempt_id == bucket.c.attempt_id)
        .where(Sample.time_us >= begins, Sample.time_us < begins + bucket.c.width)
        .order_by(Sample.time_us.desc())
        .limit(1)
        .correlate(bucket)
        .scalar_subquery()
    )
    return select(bucket.c.attempt_id, bucket.c.node, bucket.c.number, bucket.c.width, newest.label("sampled"))


_NEWEST_SAMPLES = _newest_samples()
