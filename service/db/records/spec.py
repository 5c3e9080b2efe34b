"""Specs of jobs and sweeps as they are stored, read without checking them again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torchyard.spec import After, CheckpointPolicy, JobSpec, Launcher, Network
from torchyard.spec.restarts import RestartPermission, restart_permission, stoppable
from torchyard.spec.sweeps import EarlyStopping


@dataclass(frozen=True, slots=True)
class StoredSpec:
    """View of a stored spec.

    It was checked when it was submitted, by the rules of that time. So a spec that today's rules would refuse stays
    readable, and what a spec of an earlier version does not have has its default here.
    """

    data: Mapping[str, Any]
    """The JSON, as it is stored and as the API shows it."""

    def model(self) -> JobSpec:
        """Return the whole spec as its model; `ValueError` if it breaks today's rules."""
        return JobSpec.model_validate(self.data)

    @property
    def resources(self) -> Mapping[str, Any]:
        """The part `resources`, as stored."""
        resources: Mapping[str, Any] = self.data.get("resources", {})
        return resources

    @property
    def nodes(self) -> int:
        """Nodes that an attempt needs."""
        return int(self.resources.get("nodes", 1))

    @property
    def gpus(self) -> int:
        """GPUs on each of the nodes."""
        return int(self.resources.get("gpus", 1))

    @property
    def total_gpus(self) -> int:
        """GPUs on all nodes together."""
        return self.gpus * self.nodes

    @property
    def gpu_share(self) -> int | None:
        """Bytes of GPU memory that are enough for it, beside other jobs; None: it takes whole GPUs."""
        share: int | None = self.resources.get("gpu_share")
        return share

    @property
    def gpu_memory(self) -> int | None:
        """Bytes of memory that it asks for of each GPU, to share it or at least; None: it does not say."""
        asked: int | None = self.gpu_share or self.resources.get("gpu_memory_min")
        return asked or None

    @property
    def recipe(self) -> Mapping[str, Any] | None:
        """The built-in trainer's recipe, as stored; None for a command."""
        recipe: Mapping[str, Any] | None = self.data.get("recipe")
        return recipe

    @property
    def command(self) -> list[str] | None:
        """The command's arguments; None for a recipe."""
        command: list[str] | None = self.data.get("command")
        return command

    @property
    def backend(self) -> str | None:
        """The recipe's communication backend."""
        backend: str | None = (self.recipe or {}).get("backend")
        return backend

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the secrets that it gets."""
        return tuple(self.data.get("secrets") or ())

    @property
    def launcher(self) -> Launcher | None:
        """Launcher that starts the processes."""
        launcher = self.data.get("launcher")
        return None if launcher is None else Launcher(launcher)

    @property
    def isolated(self) -> bool:
        """Its processes have a network of their own."""
        return self.data.get("network") == Network.ISOLATED

    @property
    def cold(self) -> bool:
        """It must not start warm."""
        return self.data.get("warm_start") is False

    @property
    def code(self) -> str | None:
        """Id of its code snapshot."""
        code: str | None = self.data.get("code")
        return code

    @property
    def live(self) -> str | None:
        """Folder on the node that it runs in."""
        live: str | None = self.data.get("live")
        return live

    @property
    def carry(self) -> bool:
        """Later attempts begin with the files of the ones before."""
        return bool(self.data.get("carry", True))

    @property
    def time_limit_us(self) -> int | None:
        """Microseconds that each attempt may run."""
        limit = self.data.get("time_limit")
        return None if limit is None else round(limit * 1_000_000)

    @property
    def grace_s(self) -> int:
        """Seconds between the request to stop and the kill."""
        return int(self.data.get("grace", 60))

    @property
    def max_retries(self) -> int:
        """Attempts that may fail before the job does."""
        return int(self.data.get("max_retries", 0))

    @property
    def requeues_idle(self) -> bool:
        """After its idle limit it waits again, as long as it has retries."""
        return self.data.get("idle_action") == "requeue"

    @property
    def restartable(self) -> bool:
        """Permission to stop it at any time, checkpoint or not."""
        return self.data.get("restartable") is True

    @property
    def restart_permission(self) -> RestartPermission:
        """Permission to put it back after its trial, to start from the beginning."""
        return restart_permission(self.data)

    @property
    def preemptible(self) -> bool | None:
        """Permission to stop it for others; None: the service decides."""
        preemptible: bool | None = self.data.get("preemptible")
        return preemptible

    def stoppable(self, *, saves: bool) -> bool:
        """Return whether it may be stopped for others and go on later; `saves`: it has a checkpoint to go on from."""
        return stoppable(self.data, saves=saves)

    @property
    def after(self) -> After | None:
        """Jobs that it waits for."""
        after = self.data.get("after")
        return None if after is None else After.model_validate(after)

    @property
    def checkpoint(self) -> CheckpointPolicy:
        """Rules for when checkpoints are due and which are kept."""
        return CheckpointPolicy.model_validate(self.data.get("checkpoint") or {})


@dataclass(frozen=True, slots=True)
class StoredSweep:
    """View of a stored sweep; it was checked as its spec was."""

    data: Mapping[str, Any]
    """The JSON, as it is stored and as the API shows it."""

    @property
    def running(self) -> int | None:
        """Trials that run at the same time at most; None: any number."""
        running: int | None = self.data.get("running")
        return running

    @property
    def stop(self) -> EarlyStopping | None:
        """Rule for stopping trials early; None: none is."""
        stop = self.data.get("stop")
        return None if stop is None else EarlyStopping.model_validate(stop)

    @property
    def pause_after(self) -> int:
        """Trials that must all have failed for one cause to pause it; 0: none do."""
        return int(self.data.get("pause_after", 0))
