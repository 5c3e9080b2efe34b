"""When a waiting job starts at the latest, as far as time limits tell."""

from collections.abc import Sequence
from dataclasses import replace

from service.scheduler import former as policy
from service.scheduler.boxes import Box, Running, Waiting

#: A forecast looks at so many ends of jobs and so long a queue, no more.
MAX_STEPS = 64
MAX_AHEAD = 256


def latest_start(target: str, queue: Sequence[Waiting], boxes: Sequence[Box], now: int) -> int | None:
    """When the job starts if everything runs into its time limit; None if that cannot be told.

    Runs the policy itself over the ends to come. Jobs behind the target cannot delay it and are left out.
    """
    ahead = _until(target, sorted(queue, key=policy.order))
    if len(ahead) > MAX_AHEAD:
        return None
    for _ in range(MAX_STEPS):
        starts = policy.decide(ahead, boxes, now)
        if any(start.job == target for start in starts):
            return now
        boxes = _started(boxes, starts, {w.job: w for w in ahead}, now)
        ahead = [w for w in ahead if w.job not in {start.job for start in starts}]
        ends = [r.ends_us for box in boxes for r in box.running if r.ends_us is not None]
        if not ends:
            return None
        now = max(now, min(ends))
        boxes = [_after(box, now) for box in boxes]
    return None


def _until(target: str, queue: Sequence[Waiting]) -> list[Waiting]:
    for place, waiting in enumerate(queue):
        if waiting.job == target:
            return list(queue[: place + 1])
    return []


def _started(boxes: Sequence[Box], starts: Sequence[policy.Start], waiting: dict[str, Waiting], now: int) -> list[Box]:
    running: dict[str, list[Running]] = {}
    for start in starts:
        job = waiting[start.job]
        ends_us = None if job.limit_us is None else now + job.limit_us
        for place in start.places:
            part = Running(job=job.job, shape=job.shape, uuids=place.uuids, ends_us=ends_us)
            running.setdefault(place.node, []).append(part)
    return [replace(box, running=(*box.running, *running.get(box.node, ()))) for box in boxes]


def _after(box: Box, now: int) -> Box:
    return replace(box, running=tuple(r for r in box.running if r.ends_us is None or r.ends_us > now))
