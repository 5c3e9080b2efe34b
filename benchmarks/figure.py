"""One row of the table."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What was measured once; `baseline` is the same quantity of the bare thing, measured in the same run."""

    name: str
    value: float
    unit: str
    target: str = ""
    met: bool = True
    baseline: float | None = None
    against: str = ""
