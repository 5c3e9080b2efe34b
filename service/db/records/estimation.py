"""Records of forecasts."""

from dataclasses import dataclass

from service.db.records.record import Record
from torchyard.ids import JobId


@dataclass(frozen=True, slots=True)
class EndedForecast(Record):
    """A row of `forecasts` whose job has ended."""

    job_id: JobId
    source: str
    key: str
    p10_us: int | None
    p50_us: int | None
    p90_us: int | None
    raw_p10_us: int | None
    raw_p50_us: int | None
    raw_p90_us: int | None
    made_us: int
    actual_us: int | None
    ended_us: int
