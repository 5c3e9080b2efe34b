"""Utilisation of the node and of its attempts."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import psutil

from torchyard.ids import AttemptId, now_us
from torchyard.wire import Sample
from worker.devices import nvml as library
from worker.monitoring.inventory import Status
from worker.shim import table

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
#: An attempt that is seen first so long after its start, as by a worker that was started again, has held nobody knows
#: what by then.
_MISSED_US = 60_000_000


class Sampler:
    """Measures the time between its calls; to be called from one thread, every 2 s.

    Node series: ``cpu.percent`` (of all cores), ``memory.used`` (bytes), and for each GPU ``gpu.<index>.utilization``
    (percent), ``.memory_used`` (bytes), ``.temperature`` (°C), ``.power`` (W). An attempt has ``cpu.percent`` (100 is
    one core), ``memory.used`` (resident bytes) and the series of its GPUs.
    """

    def __init__(self, nvml: library.Nvml | None, attempts: Callable[[], Sequence[Status]]) -> None:
        self._nvml = nvml
        self._attempts = attempts
        self._usage = ProcessUsage()
        self._gpu_memory = GpuMemory()
        psutil.cpu_percent()

    def gpu_memory_peak(self, attempt: AttemptId) -> int | None:
        """The most memory that an attempt's processes have held of any of its GPUs; None if nobody could look."""
        return self._gpu_memory.peak(attempt)

    def sample(self) -> list[Sample]:
        """One sample of the node, and one of every attempt that runs."""
        time_us, everyone = now_us(), table.everyone()
        cards = [] if self._nvml is None else library.cards(self._nvml)
        gpus = self._gpus(cards)
        held = {} if self._nvml is None else {card.uuid: library.processes(self._nvml, card) for card in cards}
        samples = [Sample(time_us=time_us, values=_machine() | _merge(gpus.values()))]
        self._usage.turn(everyone)
        attempts, pids = self._attempts(), {process.pid for process in everyone}
        self._gpu_memory.keep([status.attempt for status in attempts])
        for status in attempts:
            if status.shim is not None and status.living:
                tree = status.shim.below(everyone)
                its = [held[uuid] for uuid in status.devices if uuid in held]
                if all(pid in pids for card in its for pid in card):  # else they are of another PID namespace, or gone
                    self._gpu_memory.see(status, time_us, {process.pid for process in tree}, its)
                own = _merge(gpus.get(uuid, {}) for uuid in status.devices)
                values = {"cpu.percent": self._usage.percent(tree), "memory.used": resident(tree)} | own
                samples.append(Sample(time_us=time_us, attempt=status.attempt, values=values))
        return samples

    def _gpus(self, cards: Iterable[library.Card]) -> dict[str, dict[str, float]]:
        if self._nvml is None:
            return {}
        return {card.uuid: _series(card, library.readings(self._nvml, card)) for card in cards}


class GpuMemory:
    """The most memory of a GPU that each attempt has held, for those that were watched from their start on."""

    def __init__(self) -> None:
        self._peaks: dict[AttemptId, int] = {}
        #: Those whose start was missed.
        self._missed: set[AttemptId] = set()

    def peak(self, attempt: AttemptId) -> int | None:
        """Bytes of the GPU of which it held most; None if nobody could look, or not from its start on."""
        return self._peaks.get(attempt)

    def keep(self, attempts: Collection[AttemptId]) -> None:
        """Forget all but these attempts."""
        self._peaks = {attempt: peak for attempt, peak in self._peaks.items() if attempt in attempts}
        self._missed.intersection_update(attempts)

    def see(self, status: Status, now_us: int, own: Collection[int], held: Sequence[Mapping[int, int | None]]) -> None:
        """Take note of what an attempt's own processes hold: `held` has each of its GPUs, in bytes by process."""
        if status.attempt not in self._peaks and now_us - (status.started_us or now_us) >= _MISSED_US:
            self._missed.add(status.attempt)
        memory = [[size for pid, size in card.items() if pid in own] for card in held]
        if status.attempt in self._missed or not held or any(size is None for card in memory for size in card):
            return
        used = max(sum(size or 0 for size in card) for card in memory)
        self._peaks[status.attempt] = max(self._peaks.get(status.attempt, 0), used)


class ProcessUsage:
    """CPU time that processes have used between two looks at the process table."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, int], int] = {}
        self._now: dict[tuple[int, int], int] = {}
        self._since = self._until = _boot_ticks()

    def turn(self, everyone: Iterable[table.Process]) -> None:
        """Begin a new interval, with the process table as of now."""
        self._before, self._now = self._now, {process.key: process.cpu_ticks for process in everyone}
        self._since, self._until = self._until, _boot_ticks()

    def percent(self, tree: Iterable[table.Process]) -> float:
        """CPU time of some processes in the interval, in percent of one core."""
        return 100 * sum(map(self._used, tree)) / max(1.0, self._until - self._since)

    def _used(self, process: table.Process) -> int:
        now = self._now.get(process.key, 0)
        # Of an old process that was not seen before, nobody knows how much it used in this interval.
        unseen = 0 if process.start_ticks >= self._since else now
        return now - self._before.get(process.key, unseen)


def resident(tree: Iterable[table.Process]) -> float:
    """Bytes of main memory that processes occupy; what they share counts for each."""
    return float(sum(process.resident_pages for process in tree) * _PAGE)


def _boot_ticks() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS


def _series(card: library.Card, readings: dict[str, float]) -> dict[str, float]:
    index = card.index if card.instance is None else f"{card.index}.{card.instance}"
    return {f"gpu.{index}.{name}": value for name, value in readings.items()}


def _machine() -> dict[str, float]:
    memory = psutil.virtual_memory()
    return {"cpu.percent": psutil.cpu_percent(), "memory.used": float(memory.total - memory.available)}


def _merge(parts: Iterable[dict[str, float]]) -> dict[str, float]:
    return {name: value for part in parts for name, value in part.items()}
