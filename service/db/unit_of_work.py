"""Unit of work: a write transaction with its time, and what follows its commit."""

from collections import Counter
from typing import cast

from sqlalchemy import Connection

from torchyard.ids import AttemptId, JobId

_OPTION = "unit_of_work"


class UnitOfWork:
    """A write transaction with its time, and the effects that follow its commit.

    Whoever changes rows names here what has changed. Once the transaction is committed, followers of the topics wake,
    the nodes ask for their orders, and the scheduler looks again: never before, since they read the database, and not
    after a rollback, since nothing has changed.
    """

    def __init__(self, tx: Connection, now: int) -> None:
        self.tx = tx
        self.now = now
        """Wall clock in microseconds, the same for all that the transaction writes."""
        # Dictionaries keep the order and drop doubles.
        self.topics: dict[str, None] = {}
        self.nudges: dict[str, None] = {}
        self.launches: dict[tuple[str, AttemptId], None] = {}
        self.starts: dict[AttemptId, None] = {}
        self.scheduler = False
        #: Bytes by which the stored files of jobs have grown.
        self.stored = Counter[JobId]()
        #: Metric points that were stored.
        self.points = 0
        tx.execution_options(**{_OPTION: self})

    def tell(self, *topics: str) -> None:
        """Wake the followers of topics (see `service.infra.hub`)."""
        self.topics.update(dict.fromkeys(topics))

    def tell_job(self, job_id: JobId) -> None:
        """Wake the followers of a job and of the list of jobs."""
        self.tell(f"job:{job_id}", "jobs")

    def tell_node(self, node: str) -> None:
        """Wake the followers of a node."""
        self.tell(f"node:{node}")

    def nudge(self, *nodes: str) -> None:
        """Have nodes ask for their orders at once."""
        self.nudges.update(dict.fromkeys(nodes))

    def launch(self, node: str, attempt_id: AttemptId) -> None:
        """Tell a node of an attempt that is assigned to it."""
        self.launches[node, attempt_id] = None

    def start(self, attempt_id: AttemptId) -> None:
        """Tell whoever traces starts that more is known of an attempt's."""
        self.starts[attempt_id] = None

    def count_stored(self, job_id: JobId, size: int) -> None:
        """Count bytes that the files of a job take in the store from now on; below 0: that they take no more.

        They are added to the sums of its user and project (`service.db.stored_bytes`) at the end of the transaction:
        many write these, and whoever holds their locks waits for no others.
        """
        self.stored[job_id] += size

    def count_points(self, points: int) -> None:
        """Count metric points, for whoever rolls them up."""
        self.points += points

    def wake_scheduler(self) -> None:
        """Have the scheduler look at once, and wake the followers of the queue."""
        self.scheduler = True
        self.tell("queue")


def unit_of(tx: Connection) -> UnitOfWork:
    """Return the unit of work that a write transaction belongs to; KeyError for any other connection."""
    return cast("UnitOfWork", tx.get_execution_options()[_OPTION])
