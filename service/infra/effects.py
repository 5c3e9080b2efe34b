"""Effects of a commit: followers wake, nodes ask for their orders, the scheduler looks again."""

from collections.abc import Callable
from dataclasses import dataclass

from service.db.unit_of_work import UnitOfWork
from service.infra.dispatch import Dispatcher
from service.infra.hub import Hub
from torchyard.ids import AttemptId


@dataclass(frozen=True)
class Effects:
    """Receivers of the effects of committed units of work; each returns at once."""

    hub: Hub
    dispatcher: Dispatcher
    wake_scheduler: Callable[[], None]
    trace: Callable[[AttemptId], None] | None = None
    """Traces the starts of attempts, if anybody does."""

    def fire(self, unit: UnitOfWork) -> None:
        """Do all that a committed unit of work has asked for."""
        for node, attempt_id in unit.launches:
            self.dispatcher.launch(node, attempt_id)
        for node in unit.nudges:
            self.dispatcher.nudge(node)
        self.hub.notify(*unit.topics)
        if self.trace is not None:
            for attempt_id in unit.starts:
                self.trace(attempt_id)
        if unit.scheduler:
            self.wake_scheduler()
