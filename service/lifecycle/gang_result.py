"""Attempts on several nodes: when one member means the end of all, and what the members' results say together. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchyard.failures import fingerprints
from torchyard.states import STOP_PRECEDENCE, StopReason
from torchyard.wire import RankExit, Result, ResultKind


@dataclass(frozen=True, kw_only=True)
class MemberResult:
    """Result of an attempt on one node."""

    node: str
    result: Result
    learnt_us: int
    """When the service learnt of it, by its own clock."""
    sentenced: bool = False
    """It was told to end because another member had failed, and did as it was told."""


def failed(result: Result) -> bool:
    """Tell whether the other nodes must not go on: anything but a clean exit, also of a stop."""
    return not (result.kind is ResultKind.EXITED and result.exit_code == 0 and result.signal is None)


def merge(members: Sequence[MemberResult]) -> Result:
    """Merge the results of all members, in the order of node ranks: the first failure's, else that of a success.

    What failed only because it was told to, or because its peers had gone, does not count: the earliest exit of a rank
    does, with the nodes' clocks set right by when they told of it. As a report may arrive late, a failure whose own
    message says that a peer was gone comes after the others. A member that was lost left no word of its ranks, and goes
    before them.
    """
    failures = [member for member in members if failed(member.result)]
    first = min(failures, key=_moment, default=None)
    base = first or members[0]
    stops = [member.result.stop for member in members if not member.sentenced]
    return base.result.model_copy(
        update={
            "node": first.node if first else None,
            "message": _message(first),
            "stop": _strongest(stops),
            "stopped_at_step": next(
                (s for member in members if (s := member.result.stopped_at_step) is not None), None
            ),
            **_unsaved(members),
            "terminated": any(member.result.terminated for member in members),
            "ranks": sorted((one for member in members for one in _exits(member)), key=lambda one: one.rank),
            "started_us": _started(members),
            "ended_us": max(one.ended_us for one in map(_on_our_clock, members)),
            "held_us": None,  # each member has its own
            "gpu_memory_peak": max(
                (p for member in members if (p := member.result.gpu_memory_peak) is not None), default=None
            ),
            "memory_peak": max((p for member in members if (p := member.result.memory_peak) is not None), default=None),
            "dropped_log_bytes": sum(member.result.dropped_log_bytes for member in members),
            "dropped_records": sum(member.result.dropped_records for member in members),
        }
    )


def _unsaved(members: Sequence[MemberResult]) -> dict[str, Any]:
    first = next((member.result for member in members if member.result.unsaved is not None), members[0].result)
    return {"unsaved": first.unsaved, "unsaved_parts": first.unsaved_parts}


#: What counts as the cause first.
_KINDS = (ResultKind.UNUSABLE, ResultKind.LOST)


def _moment(member: MemberResult) -> tuple[bool, int, bool, int]:
    result = member.result
    kind = _KINDS.index(result.kind) if result.kind in _KINDS else len(_KINDS)
    told_to = member.sentenced and _culprit(result) is None
    return told_to, kind, result.fingerprint == fingerprints.LOST_RANK, _failed_us(member)


def _failed_us(member: MemberResult) -> int:
    culprit = _culprit(member.result)
    return (culprit.ended_us if culprit else member.result.ended_us) + _skew(member)


def _culprit(result: Result) -> RankExit | None:
    return next((one for one in result.ranks if one.rank == result.failed_rank), None)


def _skew(member: MemberResult) -> int:
    """Return what the node's clock lacks to ours, to within the time that a message takes."""
    return 0 if member.result.sent_us is None else member.learnt_us - member.result.sent_us


def _on_our_clock(member: MemberResult) -> Result:
    return member.result.model_copy(update={"ended_us": member.result.ended_us + _skew(member)})


def _exits(member: MemberResult) -> list[RankExit]:
    skew = _skew(member)
    return [one.model_copy(update={"ended_us": one.ended_us + skew}) for one in member.result.ranks]


def _message(first: MemberResult | None) -> str | None:
    if first is None or first.result.message is None:
        return None
    return f"node {first.node}: {first.result.message}"


def _strongest(stops: Sequence[StopReason | None]) -> StopReason | None:
    return max((stop for stop in stops if stop is not None), key=STOP_PRECEDENCE.__getitem__, default=None)


def _started(members: Sequence[MemberResult]) -> int | None:
    """Return the first start; None if a member never ran: then no rank got past waiting for the others."""
    times = [None if p.result.started_us is None else p.result.started_us + _skew(p) for p in members]
    never = any(member.result.started_us is None and not member.sentenced for member in members)
    return None if never else min((time for time in times if time is not None), default=None)
