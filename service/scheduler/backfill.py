"""What is kept for a job that is blocked, so that those behind it do not hold it off for ever.

Kept are the nodes where it can start first, by what is known of the jobs that run there (`expected_end`), and where
nothing is known, where the last job that must end began first. Others may have what it cannot use, and what they
leave again before it could start.

For a job that has waited for `longest_wait` the keep is strict. The nodes are then those where the youngest job in the
way began first: nothing that could be in the way starts there any more, so that this moment only moves back from
decision to decision, and the job starts at the latest when all that ran on one choice of nodes has ended.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.scheduler.boxes import Box
from service.scheduler.placement import Ask, Keep, Space, choose, sorts
from service.scheduler.reserved import expected_end
from service.scheduler.rooms import Room

if TYPE_CHECKING:
    from service.scheduler.state import Running, State


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """When a node will have room for a job: at the earliest, and since when the youngest job in its way has run."""

    node: str
    at_us: float
    youngest_us: float


def keep(space: Space, state: "State", ask: Ask, now_us: int, *, strict: bool) -> bool:
    """Keeps nodes for a blocked job; False if there are too few to keep."""
    chosen = _chosen(space, state, ask, now_us, strict=strict)
    until_us = max((opening.at_us for opening in chosen), default=math.inf)
    for opening in chosen:
        room = space.rooms[opening.node]
        space.keeps[opening.node] = Keep(
            job=ask.job,
            uuids=_wanted(room, ask),
            cpus=ask.shape.cpus,
            memory=ask.shape.memory,
            until_us=until_us,
            strict=strict,
        )
    return bool(chosen)


def _chosen(space: Space, state: "State", ask: Ask, now_us: int, *, strict: bool) -> list[Opening]:
    able = [
        room.box
        for node, room in space.rooms.items()
        if node not in space.keeps and room.box.usable.lack(ask.shape) is None
    ]
    choices = [_best(space, state, same, ask, now_us, strict=strict) for same in sorts(able, ask.shape)]
    complete = [chosen for chosen in choices if len(chosen) == ask.nodes]
    return min(complete, key=lambda chosen: max(_rank(opening, strict=strict) for opening in chosen), default=[])


def _best(space: Space, state: "State", boxes: Iterable[Box], ask: Ask, now_us: int, *, strict: bool) -> list[Opening]:
    openings = [opening(space.rooms[box.node], state, ask, now_us, strict=strict) for box in boxes]
    return sorted(openings, key=lambda one: _rank(one, strict=strict))[: ask.nodes]


def _rank(one: Opening, *, strict: bool) -> tuple[float, float, str]:
    return (one.youngest_us, 0, one.node) if strict else (one.at_us, one.youngest_us, one.node)


def opening(room: Room, state: "State", ask: Ask, now_us: int, *, strict: bool = False) -> Opening:
    """When the node will have room for the job, if those that run there end as expected (`strict`: at the latest)."""
    trial = room.copy()
    running = [state.running[job] for job in room.jobs if job in state.running]
    ends = {job.job: _end(job, now_us, strict=strict) for job in running}
    if strict:
        running.sort(key=lambda job: (job.since_us, job.job))
    else:
        running.sort(key=lambda job: (ends[job.job], job.since_us, job.job))
    at_us, youngest_us = float(now_us), 0.0
    for job in running:
        if _fits(trial, ask):
            break
        for place in job.places:
            if place.node == room.box.node:
                trial.release(job.job, job.shape, place.uuids)
        at_us, youngest_us = max(at_us, ends[job.job]), max(youngest_us, job.since_us)
    return Opening(node=room.box.node, at_us=at_us, youngest_us=youngest_us)


def _end(job: "Running", now_us: int, *, strict: bool) -> float:
    if strict:
        return math.inf if job.ends_us is None else max(job.ends_us, now_us)
    return max(expected_end(job, now_us), now_us)


def _fits(room: Room, ask: Ask) -> bool:
    return room.roomy(ask.shape) and choose(room, ask.shape) is not None


def _wanted(room: Room, ask: Ask) -> frozenset[str]:
    """The free slots if they suffice, else all that it could use."""
    slots = choose(room, ask.shape)
    if slots is not None:
        return frozenset(slot.uuid for slot in slots)
    return frozenset(slot.uuid for slot in room.usable.values() if slot.suits(ask.shape))
