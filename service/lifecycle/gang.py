"""Attempts on several nodes: when one part means the end of all, and what the parts' results say together. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from torchyard.states import STOP_PRECEDENCE, StopReason
from torchyard.wire import RankExit, Result, ResultKind


@dataclass(frozen=True, kw_only=True)
class Part:
    """How the attempt ended on one node."""

    node: str
    result: Result
    learnt_us: int
    """When the service learnt of it, by its own clock."""
    sentenced: bool = False
    """It was told to end because another part had failed, and did as it was told."""


def failed(result: Result) -> bool:
    """Whether the other nodes must not go on: anything but a clean exit, also of a stop."""
    return not (result.kind is ResultKind.EXITED and result.exit_code == 0 and result.signal is None)


def merge(parts: Sequence[Part]) -> Result:
    """One result of all parts, in the order of node ranks: the first failure's, else that of a success.

    What failed only because it was told to, or because its peers had gone, does not count: the earliest exit of a rank
    does, with the nodes' clocks set right by when they told of it. A part that was lost left no word of its ranks, and
    goes before them.
    """
    failures = [part for part in parts if failed(part.result)]
    first = min(failures, key=_moment, default=None)
    base = first or parts[0]
    stops = [part.result.stop for part in parts if not part.sentenced]
    return base.result.model_copy(
        update={
            "node": first.node if first else None,
            "message": _message(first),
            "stop": _strongest(stops),
            "stopped_at_step": next((s for part in parts if (s := part.result.stopped_at_step) is not None), None),
            "unsaved": next((words for part in parts if (words := part.result.unsaved) is not None), None),
            "terminated": any(part.result.terminated for part in parts),
            "ranks": sorted((one for part in parts for one in _exits(part)), key=lambda one: one.rank),
            "started_us": _started(parts),
            "ended_us": max(one.ended_us for one in map(_on_our_clock, parts)),
            "held_us": None,  # each part has its own
            "dropped_log_bytes": sum(part.result.dropped_log_bytes for part in parts),
            "dropped_records": sum(part.result.dropped_records for part in parts),
        }
    )


#: What counts as the cause first.
_KINDS = (ResultKind.UNUSABLE, ResultKind.LOST)


def _moment(part: Part) -> tuple[bool, int, int]:
    result = part.result
    kind = _KINDS.index(result.kind) if result.kind in _KINDS else len(_KINDS)
    return part.sentenced and _culprit(result) is None, kind, _failed_us(part)


def _failed_us(part: Part) -> int:
    culprit = _culprit(part.result)
    return (culprit.ended_us if culprit else part.result.ended_us) + _skew(part)


def _culprit(result: Result) -> RankExit | None:
    return next((one for one in result.ranks if one.rank == result.failed_rank), None)


def _skew(part: Part) -> int:
    """What the node's clock lacks to ours, to within the time that a message takes."""
    return 0 if part.result.sent_us is None else part.learnt_us - part.result.sent_us


def _on_our_clock(part: Part) -> Result:
    return part.result.model_copy(update={"ended_us": part.result.ended_us + _skew(part)})


def _exits(part: Part) -> list[RankExit]:
    skew = _skew(part)
    return [one.model_copy(update={"ended_us": one.ended_us + skew}) for one in part.result.ranks]


def _message(first: Part | None) -> str | None:
    if first is None or first.result.message is None:
        return None
    return f"node {first.node}: {first.result.message}"


def _strongest(stops: Sequence[StopReason | None]) -> StopReason | None:
    return max((stop for stop in stops if stop is not None), key=STOP_PRECEDENCE.__getitem__, default=None)


def _started(parts: Sequence[Part]) -> int | None:
    """None if a part never ran: then no rank got past waiting for the others."""
    times = [None if p.result.started_us is None else p.result.started_us + _skew(p) for p in parts]
    never = any(part.result.started_us is None and not part.sentenced for part in parts)
    return None if never else min((time for time in times if time is not None), default=None)
