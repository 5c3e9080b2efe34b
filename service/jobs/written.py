"""Jobs as JSON, written once for each version that somebody reads."""

from collections.abc import Sequence

from sqlalchemy import Connection

from service.db.records.jobs import JobVersion
from service.identity.callers import Caller
from service.identity.visibility import may_read_env
from service.infra.lru_cache import LruCache
from service.jobs import present

#: Jobs that are remembered, and how long one may be: most are a kilobyte.
_REMEMBERED, _LONGEST = 4096, 8192


class WrittenJobs:
    """Jobs by what their JSON follows from: their version, and whether the values of variables are shown."""

    def __init__(self) -> None:
        self._known: LruCache[tuple[JobVersion, bool], bytes] = LruCache(_REMEMBERED)

    def of(self, tx: Connection, found: Sequence[JobVersion], caller: Caller) -> list[bytes]:
        """Return the jobs of these versions, as `tx` sees them, in their order."""
        keys = [(each, may_read_env(caller, each.user_id)) for each in found]
        known = {key: self._known.get(key) for key in keys}
        lacking = [each.id for (each, _), written in known.items() if written is None]
        made = {job.id: job.__pydantic_serializer__.to_json(job) for job in present.jobs(tx, lacking, caller)}
        for key, written in known.items():
            if written is None and (new := made.get(key[0].id)) is not None:
                known[key] = new
                if len(new) <= _LONGEST:
                    self._known.put(key, new)
        return [written for key in keys if (written := known[key]) is not None]
