"""Processes on GPUs that the queue has given to somebody else: isolation by a variable is cooperative."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import psutil

from torchyard.injob import layout
from torchyard.quantities import format_size
from torchyard.wire import Device, Finding, FindingCode, FindingParams
from worker.devices import nvml as library
from worker.monitoring.inventory import Status
from worker.shim import table


@dataclass(frozen=True, kw_only=True)
class Offender:
    """A process on a GPU that is not its own."""

    uuid: str
    pid: int
    user: str
    name: str
    holders: tuple[str, ...]
    """The attempts that have the GPU; several share it."""
    leftover: str | None = None
    """The attempt that it is left of, if that one has ended."""
    since_us: int
    """When it was started."""
    stray: bool = True
    """It is of no attempt, living or ended."""
    memory: int | None = None
    """Bytes of the GPU that it holds; None where the driver does not tell."""

    def __str__(self) -> str:
        return self.finding().message

    def finding(self) -> Finding:
        """Return what it does, in words."""
        verb = "holds" if len(self.holders) == 1 else "hold"
        holders = " and ".join(self.holders)
        whose = f"which {holders} {verb}" if holders else "which the queue has given to nobody"
        held = "" if self.memory is None else format_size(self.memory)
        return Finding(
            code=FindingCode.ON_HELD_GPU if holders else FindingCode.ON_FREE_GPU,
            message=f"{self.title} uses {f'{held} of ' if held else ''}GPU {self.uuid}, {whose}",
            params={**self.params, "uuid": self.uuid, "held": held, "holders": self.holders},
        )

    @property
    def title(self) -> str:
        """The process, its owner and its age; the same as long as it lives."""
        return "process {pid} ({name}) of {user}, started {started},".format(**self.params)

    @property
    def params(self) -> FindingParams:
        """Params of the title."""
        started = f"{datetime.fromtimestamp(self.since_us // 1_000_000, UTC):%Y-%m-%d %H:%M UTC}"
        return {"pid": self.pid, "name": self.name, "user": self.user, "started": started}


def find(nvml: library.Nvml, attempts: Callable[[], Sequence[Status]]) -> list[Offender]:
    """All offenders on this machine, as of now."""
    # The cards are read first: what starts meanwhile must find its attempt in the list.
    users = {card.uuid: library.processes(nvml, card) for card in library.cards(nvml)}
    living = [status for status in attempts() if status.living]
    everyone = table.everyone()
    found = []
    for uuid, pids in users.items():
        holders = [status for status in living if uuid in status.devices]
        shims = [holder.shim for holder in holders if holder.shim]
        strangers = set(pids) - {process.pid for shim in shims for process in shim.below(everyone)}
        found += [_offender(uuid, pid, pids[pid], holders, living) for pid in sorted(strangers)]
    return [offender for offender in found if offender is not None]


def keep_off(devices: Sequence[Device], offenders: Sequence[Offender]) -> list[Device]:
    """The devices, unusable those on which something of an ended attempt outlives SIGKILL."""
    stuck = {each.uuid: each for each in offenders if each.leftover is not None}
    return [_keep_off(device, stuck[device.uuid]) if device.uuid in stuck else device for device in devices]


def _keep_off(device: Device, stuck: Offender) -> Device:
    why = f"process {stuck.pid} of attempt {stuck.leftover} outlives SIGKILL on it: reset the GPU, or reboot the node"
    params: FindingParams = {"pid": stuck.pid, "attempt": stuck.leftover or ""}
    return device.unusable_for(Finding(code=FindingCode.OUTLIVES_KILL, message=why, params=params))


def _offender(
    uuid: str, pid: int, memory: int | None, holders: Sequence[Status], living: Sequence[Status]
) -> Offender | None:
    try:
        process = psutil.Process(pid)
        name, user, started = process.name(), process.username(), process.create_time()
    except psutil.Error:
        return None
    attempt = _attempt_of(pid)
    leftover = None if attempt in {status.attempt for status in living} else attempt
    holding = tuple(holder.attempt for holder in holders)
    return Offender(
        uuid=uuid,
        pid=pid,
        user=user,
        name=name,
        holders=holding,
        leftover=leftover,
        stray=attempt is None,
        since_us=round(started * 1e6),
        memory=memory,
    )


def _attempt_of(pid: int) -> str | None:
    process, name = table.find(pid), f"{layout.ATTEMPT_ID}=".encode()
    entries = process.environment() if process else []
    return next(
        (entry.removeprefix(name).decode(errors="replace") for entry in entries if entry.startswith(name)), None
    )
