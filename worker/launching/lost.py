"""The end of an attempt whose shim is dead: what is left of it is killed, and its result written."""

import os

from torchyard.ids import now_us
from torchyard.injob import layout
from torchyard.wire import RankExit, Result, ResultKind
from worker.attempts.folder import AttemptFolder
from worker.limits.node import end_groups
from worker.monitoring import processes
from worker.shim import verdict


def finalize(folder: AttemptFolder, seconds: float) -> bool:
    """End an attempt whose lock is held here; return False if processes outlive SIGKILL for so many seconds."""
    limits = (folder.read_launch() or {}).get("limits", {})
    if not end_groups(limits, seconds) or processes.sweep(folder.attempt_id, seconds):
        return False
    shim = folder.read_shim()
    message = "the process that guarded this attempt was killed (out of memory, or by hand)"
    if shim is None:
        message = "the node was interrupted while it started this attempt; no instruction of the job has run"
    started_us = shim.started_us if shim else None
    ranks = _noted_exits(folder)
    folder.write_result(
        Result(kind=ResultKind.LOST, message=message, ranks=ranks, started_us=started_us, ended_us=now_us())
    )
    return True


def _noted_exits(folder: AttemptFolder) -> list[RankExit]:
    """Return the exits that the ranks' wrappers noted before the shim was gone."""
    launch = folder.read_launch() or {}
    ranks = verdict.ranks_of(launch)
    noted = verdict.marked_exits(str(folder.at(layout.MARKS)), ranks, {os.getuid(), launch.get("uid")})
    return [RankExit(**each._asdict()) for each in noted]
