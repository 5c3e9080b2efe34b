"""Records of metric series."""

from dataclasses import dataclass

from service.db.records.record import Record
from service.db.special_values import SPECIAL_VALUES
from torchyard import api
from torchyard.ids import JobId


def stored_value(value: float | None, special: int) -> api.Number:
    """Return a metric's value from its two columns: a number, or the word for one that JSON cannot say."""
    word = SPECIAL_VALUES[special]
    if word is None and value is None:
        raise ValueError("a value without a number is a special one")
    return word or value or 0.0


@dataclass(frozen=True, slots=True)
class LastMetric(Record):
    """Newest value of a series."""

    job_id: JobId
    stream: str
    name: str
    last_value: float | None
    last_special: int
    last_time_us: int

    @property
    def value(self) -> api.Number:
        """The newest value, or the word for one that JSON cannot say."""
        return stored_value(self.last_value, self.last_special)
