"""A submission as it came: its sender, its spec and what it goes on from."""

from dataclasses import dataclass
from typing import NamedTuple

from service.identity.callers import Caller
from torchyard.api import SubmissionNote
from torchyard.ids import JobId
from torchyard.spec import JobSpec


class LauncherReasonParts(NamedTuple):
    """Why a spec has its launcher, where that was chosen."""

    words: str
    code: str = ""
    """One of `torchyard.analysis.launchers.LauncherReasonCode`; empty: an older client gave words alone."""
    subject: str = ""
    """What the words name."""


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A submission, and where it comes from if it is a rerun."""

    caller: Caller
    spec: JobSpec
    key: str | None = None
    """The Idempotency-Key."""
    fingerprint: str = ""
    rerun_of: JobId | None = None
    restore_checkpoint: str | None = None
    carry_from: JobId | None = None
    """The job whose files it begins with."""
    snapshot: str | None = None
    """A snapshot that may be used although another user uploaded it: the rerun job's own."""
    advice: SubmissionNote | None = None
    """Advice on the checkpoint that it goes on from, or on how `gpus: all` was read."""
    launcher_reason: LauncherReasonParts | None = None
    received_us: int | None = None
    """When the service received its request."""
