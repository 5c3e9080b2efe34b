"""Effects of a commit: followers wake, nodes ask for their orders, the scheduler looks again."""

from collections.abc import Callable
from dataclasses import dataclass

from service.db.unit_of_work import UnitOfWork
from service.infra.dispatch import Dispatcher
from service.infra.hub import Hub
from service.infra.relay import SCHEDULER
from torchyard.ids import AttemptId


@dataclass(frozen=True)
class Effects:
    """Receivers of the effects of committed units of work; each returns at once."""

    hub: Hub
    dispatcher: Dispatcher
    wake_scheduler: Callable[[], None]
    trace: Callable[[AttemptId], None] | None = None
    """Traces the starts of attempts, if anybody does."""
    tell_others: Callable[..., None] | None = None
    """Tells topics to the other services on the database, where there may be some."""
    count_points: Callable[[int], None] | None = None
    """Hears how many metric points were stored."""

    def fire(self, unit: UnitOfWork) -> None:
        """Do all that a committed unit of work has asked for."""
        for node, attempt_id in unit.launches:
            self.dispatcher.launch(node, attempt_id)
        for node in unit.nudges:
            self.dispatcher.nudge(node)
        self.hub.notify(*unit.topics)
        if self.tell_others is not None:
            self.tell_others(*unit.topics, *([SCHEDULER] if unit.scheduler else []))
        if self.trace is not None:
            for attempt_id in unit.starts:
                self.trace(attempt_id)
        if self.count_points is not None and unit.points:
            self.count_points(unit.points)
        if unit.scheduler:
            self.wake_scheduler()
