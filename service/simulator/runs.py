"""Result of a simulation: when each job held which GPUs."""

from dataclasses import dataclass

from service.scheduler.model.nodes import Placement
from service.simulator.trace import TraceJob


@dataclass(frozen=True, kw_only=True, slots=True)
class Spell:
    """A time during which a job held its GPUs, in microseconds."""

    start_us: int
    end_us: int
    #: The part of that time without progress.
    lost_us: int
    #: The GPUs that it held on each node.
    placements: tuple[Placement, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRun:
    """Simulated run of one job: the GPUs that it held, and when."""

    job: TraceJob
    #: GPUs that it held: more than it asked for if they do not divide evenly among its nodes; its part of shared ones.
    gpus: float
    spells: tuple[Spell, ...]
    #: How often it was put back after its trial, and started from the beginning.
    restarts: int = 0

    @property
    def end_us(self) -> int:
        """End of the job, in microseconds."""
        return self.spells[-1].end_us

    @property
    def held_us(self) -> int:
        """Time that the job held its GPUs, in microseconds."""
        return sum(spell.end_us - spell.start_us for spell in self.spells)
