"""Values as they look in a terminal; pure functions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from torchyard.api import ProgressSource
from torchyard.cli.terminal import joined, styled
from torchyard.failures.tracebacks import raised_line
from torchyard.quantities import format_duration, format_size
from torchyard.wire import LinkLevel

if TYPE_CHECKING:
    from rich.text import Text

    from torchyard.api import Attempt, HeldDevice, Job, Member, Node, NodeDevice, Number

#: A time in a message of the service, which writes all of them so.
_IN_MESSAGE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)? UTC")
BARS = "▁▂▃▄▅▆▇█"
STYLES = {
    "queued": "yellow",
    "assigned": "cyan",
    "starting": "cyan",
    "running": "bold cyan",
    "stopping": "magenta",
    "unreachable": "bold magenta",
    "succeeded": "green",
    "failed": "bold red",
    "cancelled": "dim",
    "online": "green",
    "draining": "yellow",
}


def message(text: str) -> str:
    """A sentence of the service, with its times on the local clock."""
    return _IN_MESSAGE.sub(lambda found: _local(found.group()), text)


def _local(words: str) -> str:
    at = words.removesuffix(" UTC")
    try:
        local = datetime.fromisoformat(at).replace(tzinfo=UTC).astimezone()
    except (ValueError, OverflowError):
        return words
    return local.replace(tzinfo=None).isoformat(" ", "minutes" if at.count(":") == 1 else "seconds")


def state(job: Job) -> Text:
    """A job's state in its colour; a held job says so."""
    shown = "held" if job.held and job.state.value == "queued" else job.state.value
    return styled(shown, STYLES.get(job.state.value, ""))


def ago(moment: datetime | None, at: datetime) -> str:
    """Time since a moment, in words."""
    return "never" if moment is None else f"{format_duration(max(0.0, (at - moment).total_seconds()))} ago"


def elapsed(job: Job, at: datetime) -> str:
    """Time that a job has run, without its waits; of one that never started the time that it waited."""
    waited = ((job.ended_at or at) - job.created_at).total_seconds()
    return format_duration(max(0.0, waited) if job.started_at is None else job.running_s(at))


def devices(held: Sequence[HeldDevice]) -> str:
    """``box:0,1``, by node."""
    nodes: dict[str, list[str]] = {}
    for device in held:
        nodes.setdefault(device.node, []).append(str(device.index))
    return " ".join(f"{node}:{','.join(indexes)}" for node, indexes in nodes.items())


def ranks(members: Sequence[Member]) -> str:
    """``0-1 on box, 2-3 on far``; empty on one node."""
    if len(members) < 2:
        return ""
    return ", ".join(f"{_range(each)} on {each.node}" for each in members)


def _range(member: Member) -> str:
    first, last = member.first_rank, member.last_rank
    return f"{first}" if first == last else f"{first}-{last}"


def progress(job: Job, *, source: bool = False) -> str:
    """``120/500 (24%)`` and what is left; with `source`, that it was read from what the job prints.

    A total that has been passed is none.
    """
    if job.progress is None:
        return ""
    step, total, eta = job.progress.step, job.progress.total_steps, job.progress.eta_s
    if not total or step > total:
        return f"step {step:,}"
    left = f" {format_duration(eta)} left" if eta else ""
    printed = ", as printed" if source and job.progress.source == ProgressSource.PRINTED else ""
    return f"{step:,}/{total:,} ({100 * step // total}%){left}{printed}"


def number(value: Number) -> str:
    """Four significant digits; NaN and infinities by name."""
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e6 else f"{value:.4g}"


def latest(values: dict[str, Number]) -> str:
    """``loss 0.12  accuracy 0.98``."""
    return "  ".join(f"{name} {number(value)}" for name, value in sorted(values.items()))


def counted(count: int, one: str, many: str) -> str:
    """``1 file``, ``1,200 files``."""
    return f"{count:,} {one if count == 1 else many}"


def sparkline(values: Iterable[Number], width: int = 40) -> str:
    """A line of bars; a bar is the mean of the values that fall on it, and what is not finite leaves a gap."""
    numbers = [float(value) for value in values]
    if not numbers:
        return ""
    width = min(width, len(numbers))
    bins = [numbers[i * len(numbers) // width : (i + 1) * len(numbers) // width] for i in range(width)]
    means = [_mean([value for value in each if math.isfinite(value)]) for each in bins]
    known = [mean for mean in means if mean is not None]
    if not known:
        return " " * width
    low, high = min(known), max(known)
    span = (high - low) or 1.0
    return "".join(" " if mean is None else BARS[round((mean - low) / span * (len(BARS) - 1))] for mean in means)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def lost(attempts: Sequence[Attempt]) -> str:
    """Describe the metrics and logs of a job that could not be kept; empty if there are none."""
    records = sum(each.dropped_records for each in attempts)
    log = sum(each.dropped_log_bytes for each in attempts)
    told = [
        counted(records, "metric record", "metric records") if records else "",
        f"{format_size(log)} of logs" if log else "",
    ]
    return " and ".join(filter(None, told))


def memory(attempts: Sequence[Attempt], asked: int | None) -> str:
    """``peak 11.0 GiB of 40.0 GiB``: the most main memory that any attempt held, and what the job asked for."""
    return _peak([each.memory_peak for each in attempts], asked)


def gpu_memory(attempts: Sequence[Attempt], resources: Mapping[str, int | None]) -> str:
    """``peak 11.0 GiB of 40.0 GiB``: the most memory that any attempt held of one GPU, and what the job asked for."""
    asked = resources.get("gpu_share") or resources.get("gpu_memory_min") or None
    return _peak([each.gpu_memory_peak for each in attempts], asked)


def _peak(peaks: Sequence[int | None], asked: int | None) -> str:
    known = [peak for peak in peaks if peak is not None]
    limit = "" if asked is None else format_size(asked)
    if not known:
        return limit
    return f"peak {format_size(max(known))}" + (f" of {limit}" if limit else "")


def enforced(node: Node) -> str:
    """``limits memory, cpus``: what the node's kernel holds jobs to, or why to no limits."""
    if node.unenforced is None:
        return f"limits {', '.join(node.enforced)}" if node.enforced else "no limits by its kernel"
    others = f", but {', '.join(node.enforced)}" if node.enforced else ""
    return f"no limits by its kernel{others}: {node.unenforced}"


def capacity(node: Node) -> str:
    """Number of free devices, in words."""
    usable = [device for device in node.devices if device.unusable is None]
    return f"{sum(device.job is None for device in usable)} of {len(usable)} free"


def links(device: NodeDevice, node: Node) -> str:
    """``nvlink 1,2 sys 3 (numa 0)``: what joins a GPU to the node's others, the fastest first."""
    if device.topology is None:
        return ""
    indexes = {each.uuid: each.index for each in node.devices}
    levels = {level: sorted(_at(device.topology.links, level, indexes)) for level in LinkLevel}
    ways = " ".join(f"{level} {','.join(map(str, others))}" for level, others in levels.items() if others)
    numa = "" if device.topology.numa is None else f"(numa {device.topology.numa})"
    return f"{ways} {numa}".strip()


def _at(found: Mapping[str, LinkLevel], level: LinkLevel, indexes: Mapping[str, int]) -> Iterable[int]:
    return (indexes[uuid] for uuid, each in found.items() if each is level and uuid in indexes)


def status(job: Job) -> Text:
    """Progress and newest metrics of a job, or why it failed."""
    if job.error is not None:
        told = raised_line(job.error.traceback or "") or job.error.message or job.error.cause
        return styled("".join(told.splitlines()[:1])[:100], "red")
    parts = ((progress(job), ""), (latest(job.latest), "dim"))
    return joined((part for part in parts if part[0]), between="  ")
