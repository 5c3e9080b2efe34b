"""Leadership: which of several services on one database schedules and watches."""

import logging
import threading
from contextlib import suppress

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from service.db.engine import Database

#: Seconds without a word of the leader after which the database ends its session, and with it the lead. `leads` is
#: asked every second: only a process that is stopped, a machine that is gone or a network that is cut says nothing.
SILENCE_S = 3.0
#: The advisory lock's number: "TorchYrd" read as an integer.
LOCK = int.from_bytes(b"TorchYrd", "big") >> 1

_log = logging.getLogger(__name__)


class Leader:
    """An advisory lock of PostgreSQL, which ends with the connection that holds it: at once with the process, and after
    `SILENCE_S` without a word. Who has lost the lead and does not know it yet does no harm: each decision is a
    compare-and-set on rows. On SQLite there is one service only, so it always leads. Any thread may ask.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        #: How often this service has taken the lead.
        self.terms = 0

    @property
    def is_known_to_lead(self) -> bool:
        """True if it led when it was asked last."""
        return self._db.is_sqlite or self._connection is not None

    def leads(self) -> bool:
        """Tell whether this service leads now; take the lead if nobody has it."""
        if self._db.is_sqlite:
            return True
        with self._lock:
            try:
                return self._still_leads() or self._try()
            except SQLAlchemyError as error:
                _log.warning("this service cannot tell whether it leads, and does not for now: %s", error)
                self._drop()
                return False

    def resign(self) -> None:
        """Let another service lead.

        The lock is given back first: the database frees that of a closed connection only when it gets to it.
        """
        with self._lock:
            if self._connection is not None:
                with suppress(SQLAlchemyError):
                    self._connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": LOCK})
            self._drop()

    def _still_leads(self) -> bool:
        if self._connection is None:
            return False
        self._connection.execute(text("SELECT 1"))
        return True

    def _try(self) -> bool:
        connection = self._db.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            if not connection.scalar(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": LOCK}):
                connection.close()
                return False
            connection.execute(text(f"SET idle_session_timeout = {round(SILENCE_S * 1000)}"))
        except SQLAlchemyError:
            _end(connection)
            raise
        self._connection = connection
        self.terms += 1
        _log.info("this service schedules and watches now")
        return True

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            _end(connection)


def _end(connection: Connection) -> None:
    """Close a connection for good: back in the pool it would go on holding the lock."""
    with suppress(SQLAlchemyError):
        connection.invalidate()
    connection.close()
