"""Ingest of what nodes send while a job runs: logs, metrics and telemetry.

Every batch may come twice, in part or out of order. A stream has a mark, the bytes of its file that are stored for
good; what lies before the mark is passed over, and what would leave a hole is refused with the mark.
"""

from service.ingest.logs import ReceivedLog, append
from service.ingest.metrics import parse, record
from service.ingest.samples import sample

__all__ = ["ReceivedLog", "append", "parse", "record", "sample"]
