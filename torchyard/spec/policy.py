"""Policy of sharing, as an administrator sets it: the policy file, and the answer of ``/policy``."""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from torchyard.described import Described
from torchyard.quantities import Duration


class Order(StrEnum):
    """The order of jobs."""

    #: Priority class, then shares, age and the running time that is still to come, as far as it has been earned.
    FAIR = "fair"
    #: Who came first.
    FIFO = "fifo"
    #: Shortest job first: an oracle, in simulations alone.
    SJF = "sjf"
    #: Shortest remaining time first: an oracle, in simulations alone.
    SRTF = "srtf"
    #: Least attained service, in two queues (Tiresias, Gu et al. 2019).
    LAS = "las"


class Policy(Described):
    """The rules by which the box is shared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order: Order = Order.FAIR
    """Rule by which waiting jobs are ordered."""
    half_life: Annotated[Duration, Field(gt=0)] = 7 * 86400
    """After this long, GPU time that somebody had counts half."""
    class_age: Annotated[Duration, Field(gt=0)] = 86400
    """Waiting this long lifts a job by one priority class, up to the highest of which there are jobs."""
    longest_wait: Annotated[Duration, Field(gt=0)] = 3 * 86400
    """A job that has waited this long is overdue: what it needs is kept from jobs that cannot be stopped, and in 36
    minutes of every 12 hours it comes before others and is not preempted."""
    backfill: bool = True
    """Whether jobs may start before one that is blocked, if that does not delay it."""
    preemption: bool = True
    """Whether a job may be stopped, after a checkpoint, for one of a higher class or of somebody below their share."""
    min_run: Duration = 60
    """A job that was started is left alone for so long."""
    preemption_cost: Duration = 30
    """What a preemption is taken to cost of its GPUs: checkpoint, start, and work done again."""
    checkpoint_timeout: Annotated[Duration, Field(gt=0)] = 300
    """If the checkpoint takes longer, the preemption is given up."""
    restarts: Annotated[int, Field(ge=0, le=10)] = 2
    """So often a job that cannot be stopped may be put back after its first `time_slice`, to start from the beginning
    when its turn comes; 0 turns this off."""
    no_restarts: tuple[str, ...] = ()
    """Projects whose jobs are never put back, unless their specs say `restartable: true`."""
    time_slice: Duration | None = 60
    """When the box is over-full: a new job of unknown length gets so long on its GPUs, then the shorter goes first;
    null lets what runs run, unless `preemption` stops it."""
