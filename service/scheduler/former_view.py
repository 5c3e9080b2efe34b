"""The state in the words of the explanation's former types."""

from dataclasses import replace

from service.scheduler.boxes import Box, Running, Waiting
from service.scheduler.former import order
from service.scheduler.state import Hindrance, State


def queue(state: State) -> list[Waiting]:
    """The jobs that wait, in the order of the queue."""
    found = [
        Waiting(
            job=job.job,
            number=job.number,
            priority=job.priority,
            shape=job.shape,
            nodes=job.nodes,
            held=job.hindrance not in (None, Hindrance.SAVING),
            limit_us=job.limit_us,
            saving=job.hindrance is Hindrance.SAVING,
        )
        for job in state.waiting.values()
    ]
    return sorted(found, key=order)


def boxes(state: State) -> list[Box]:
    """The nodes, and who holds what."""
    held: dict[str, list[Running]] = {}
    for job in state.running.values():
        for place in job.places:
            part = Running(job=job.job, shape=job.shape, uuids=place.uuids, ends_us=job.ends_us)
            held.setdefault(place.node, []).append(part)
    return [replace(box, running=tuple(held.get(name, ()))) for name, box in sorted(state.boxes.items())]
