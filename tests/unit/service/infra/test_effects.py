"""Effects of a committed unit of work reach whom it names."""

from typing import Any, cast

from sqlalchemy import create_engine

from service.db.unit_of_work import UnitOfWork
from service.infra.dispatch import Dispatcher
from service.infra.effects import Effects
from service.infra.hub import Hub


class Receiver:
    """Hub, dispatcher and scheduler in one, which note what they are told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def notify(self, *topics: str) -> None:
        self.told.append(("notify", *topics))

    def nudge(self, node: str) -> None:
        self.told.append(("nudge", node))

    def launch(self, node: str, attempt_id: str) -> None:
        self.told.append(("launch", node, attempt_id))

    def trace(self, attempt_id: str) -> None:
        self.told.append(("trace", attempt_id))

    def tell(self, *topics: str) -> None:
        self.told.append(("tell", *topics))

    def count(self, points: int) -> None:
        self.told.append(("count", points))

    def wake(self) -> None:
        self.told.append(("wake",))


def test_each_effect_reaches_its_receiver_once() -> None:
    receiver = Receiver()
    hub, dispatcher = cast("Hub", receiver), cast("Dispatcher", receiver)
    effects = Effects(hub, dispatcher, receiver.wake, receiver.trace, receiver.tell, receiver.count)
    with create_engine("sqlite://").connect() as tx:
        unit = UnitOfWork(tx, 0)
        unit.tell_job("job-1")
        unit.tell_node("box")
        unit.nudge("box")
        unit.launch("far", "att-1")
        unit.start("att-2")
        unit.count_points(2)
        unit.count_points(3)
        unit.wake_scheduler()
        effects.fire(unit)
    assert receiver.told == [
        ("launch", "far", "att-1"),
        ("nudge", "box"),
        ("notify", "job:job-1", "jobs", "node:box", "queue"),
        ("tell", "job:job-1", "jobs", "node:box", "queue", "scheduler"),
        ("trace", "att-2"),
        ("count", 5),
        ("wake",),
    ]
