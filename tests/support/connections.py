"""Connections to PostgreSQL that outlive the engine that made them: each is a process that reads the catalog anew."""

from collections import defaultdict
from typing import Any, ClassVar

import psycopg

#: What a session has that the next one must not.
_RESET = "RESET ALL; UNLISTEN *; SELECT pg_advisory_unlock_all()"


class KeptConnection(psycopg.Connection[Any]):
    """A connection that its pool has closed, for the next pool of the same database."""

    #: Closed ones, by the name of the database.
    kept: ClassVar[defaultdict[str, list["KeptConnection"]]] = defaultdict(list)

    @classmethod
    def get(cls, parameters: dict[str, Any]) -> "KeptConnection":
        closed = cls.kept[parameters["dbname"]]
        while closed:
            found = closed.pop()
            if found._is_clean():
                return found
        return cls.connect(**parameters)

    @classmethod
    def forget(cls, database: str) -> None:
        """Close what is kept of a database."""
        for each in cls.kept.pop(database, ()):
            super(cls, each).close()

    def close(self) -> None:
        if self._is_clean():
            self.kept[self.info.dbname].append(self)

    def _is_clean(self) -> bool:
        try:
            self.autocommit = True
            self.execute(_RESET)
            self.autocommit = False
        except psycopg.Error:
            super().close()
        return not self.closed
