"""Job spec: what a person or a program submits, as YAML or JSON.

A spec is plain data. Every field has a default except the work itself: either a `recipe` (the built-in
trainer) or a `command` (one's own program).
"""

import re
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from torchyard.quantities import Duration, Size
from torchyard.recipe import Recipe
from torchyard.spec.base import NAME, Model, Ref, Tag
from torchyard.spec.checkpoints import CheckpointPolicy, Resume
from torchyard.spec.command import ENV_NAME, RESERVED_ENV, Command, Environment, Launcher
from torchyard.spec.priority import Priority
from torchyard.spec.resources import Resources
from torchyard.spec.secrets import SecretName
from torchyard.spec.sweeps import ENVIRONMENT as PARAMETERS
from torchyard.spec.sweeps import Sweep
from torchyard.translatable import TranslatableText

OutputPattern = Annotated[str, Field(min_length=1, max_length=1000)]
#: A job with this tag keeps its files, however old it is.
KEEP = "keep"
SNAPSHOT_ID = re.compile(r"snap-[0-9a-z]{26}")


class Tracker(StrEnum):
    """Experiment trackers whose files the node reads."""

    TENSORBOARD = "tensorboard"
    WANDB = "wandb"
    MLFLOW = "mlflow"
    TRACKIO = "trackio"


class Network(StrEnum):
    """The network that a job's processes see."""

    #: The node's own.
    HOST = "host"
    #: A network namespace of its own with nothing but a loopback interface.
    ISOLATED = "isolated"


class After(Model):
    """Jobs that this one waits for."""

    jobs: Annotated[tuple[Ref, ...], Field(min_length=1, max_length=1000)]
    """Ids or numbers of jobs or sweeps."""
    need: Literal["all", "any"] = "all"
    """Whether all of them must have ended, or one is enough."""
    when: Literal["success", "end"] = "success"
    """Whether they must succeed, or may end in any way; a trial that its sweep stopped early has done its part."""


class HangPolicy(Model):
    """The rule for a run that makes no step for ``max(after, factor * its median step)``."""

    after: Duration = 300
    """No run is taken for hanging before this."""
    factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 20
    """Times its median step."""
    action: Literal["stop", "show"] = "stop"
    """Once its stacks are dumped: stop it (retries count), or only show that it hangs."""


class JobSpec(Model):
    """A training job."""

    name: Annotated[str, Field(pattern=f"^{NAME}$")] = "job"
    """Shown in lists; need not be unique."""
    project: Annotated[str, Field(pattern=f"^{NAME}$")] = "default"
    """The project whose share the job uses."""
    tags: Annotated[tuple[Tag, ...], Field(max_length=32)] = ()
    """Free words to filter by."""
    resources: Resources = Resources()
    """Devices, memory and nodes that it needs."""
    recipe: Recipe | None = None
    """A run of the built-in trainer; exclusive with `command`."""
    command: Command | None = None
    """One's own program and its arguments, a list or one line; exclusive with `recipe`."""
    launcher: Launcher = Launcher.AUTO
    """How the command is started; `auto` chooses when the job is submitted, and says why."""
    code: str | None = None
    """A snapshot id; `yard submit` also takes a folder and uploads it."""
    live: str | None = None
    """An absolute folder on the node, used as it is; exclusive with `code`."""
    link: Annotated[tuple[str, ...], Field(max_length=64)] = ()
    """Folders and files below `link_root` that the snapshot leaves out and symbolic links join in on the node."""
    link_root: str | None = None
    """The folder that the snapshot was taken from; `yard submit` fills it in."""
    python: str | None = None
    """Interpreter, venv or conda prefix of the command; `yard submit` takes the active one."""
    env: Environment = {}
    """Environment variables."""
    warm_start: bool = True
    """Whether it may be forked from a process of its node that has loaded PyTorch already, where nodes have those;
    `false`: each of its processes is executed."""
    network: Network = Network.HOST
    """`isolated`: the processes reach each other and nothing else, and nobody else on the node reaches them. One node
    only, whose worker runs as root. Services on localhost, downloads and trackers that send are out of reach."""
    secrets: Annotated[tuple[SecretName, ...], Field(max_length=64)] = ()
    """Names of secrets (`yard secrets set`) that the job gets as variables, with the values that they have when it
    starts: its owner's own first, then those of its project."""
    priority: Priority = Priority.NORMAL
    """Class in the queue; jobs of a higher one come first."""
    time_limit: Duration | None = None
    """Running time after which the job is stopped."""
    start_limit: Annotated[Duration, Field(gt=0)] | None = None
    """Time in the queue after which a job that never started is given up."""
    idle_limit: Annotated[Duration, Field(gt=0)] | None = None
    """Time without any work of its GPUs after which the job is stopped; after half of it that is told."""
    idle_action: Literal["stop", "requeue"] = "stop"
    """What follows its idle limit, once it has saved its work: it fails, or it waits again at no cost of a retry,
    unless three attempts in a row came no further."""
    hang: HangPolicy = HangPolicy()
    """What is done when the run makes no more steps; one that has reported none is not watched."""
    preemptible: bool | None = None
    """Whether it may be stopped in favour of another job and go on later; without it, only once it has written a
    checkpoint that was verified, or if it is restartable. If it must not be stopped, it gets no time slices."""
    restartable: bool | Literal["auto"] = "auto"
    """`true`: it may be stopped at any time, and starts from its newest checkpoint, or from the beginning. `auto`: as
    long as nothing is saved, it may be put back after its trial (a minute from its first step on, and twice at most,
    unless the policy says otherwise), and starts from the beginning; only a recipe, or a `torchrun` or `python` job on
    a snapshot without `link`. `false`: never."""
    after: After | None = None
    """Jobs that must have ended before it starts; a list stands for all of them, with success."""
    sweep: Sweep | None = None
    """Parameters and their values: one job for each combination."""
    grace: Duration = 60
    """How long a stopping job may take to save its work before it is killed."""
    max_retries: Annotated[int, Field(ge=0, le=100)] = 0
    """How often a failed job starts again, from its newest checkpoint."""
    log_limit: Size = 2**30
    """Bytes of log kept per rank and attempt; the rest is dropped and counted."""
    checkpoint: CheckpointPolicy = CheckpointPolicy()
    """When checkpoints are written, and which are kept."""
    resume: Resume = Resume()
    """How the command is told of a checkpoint; scripts of Lightning and of transformers' Trainer need nothing."""
    outputs: Annotated[tuple[OutputPattern, ...], Field(max_length=256)] | None = None
    """Which of the files that the program writes in its folder, and beside it (``../data/x``), are kept: patterns as in
    a .gitignore, the last one that matches decides, ``!`` leaves out. Without it all but caches; if every pattern
    begins with ``!``, all but those. An empty list keeps ``TORCHYARD_OUTPUT_DIR`` alone, which is always kept."""
    carry: bool = True
    """Whether an attempt that restores no checkpoint finds the files of the one before."""
    trackers: bool | tuple[Tracker, ...] = True
    """Experiment trackers whose files are read for metrics: all, none (``false``), or a list of them."""

    @field_validator("after", mode="before")
    @classmethod
    def _bare_after(cls, given: Any) -> Any:
        if isinstance(given, str | int):
            given = [given]
        return {"jobs": [str(job) for job in given]} if isinstance(given, list | tuple) else given

    @field_validator("env")
    @classmethod
    def _environment(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if not ENV_NAME.fullmatch(name):
                raise ValueError(
                    TranslatableText("variable-name", "{name!r} is not a name for an environment variable", name=name)
                )
            if name in RESERVED_ENV or (name.startswith("TORCHYARD_") and name != PARAMETERS):
                raise ValueError(
                    TranslatableText("variable-reserved", "{name} is set by the launcher: leave it out", name=name)
                )
        return env

    @field_validator("link")
    @classmethod
    def _links(cls, link: tuple[str, ...]) -> tuple[str, ...]:
        for path in link:
            if path.startswith("/") or ".." in path.split("/") or not path.strip("/."):
                raise ValueError(
                    TranslatableText(
                        "link-inside", "{path!r} must be a path inside the code folder, without '..'", path=path
                    )
                )
        return tuple(dict.fromkeys(str(PurePosixPath(path)) for path in link))

    @field_validator("secrets")
    @classmethod
    def _distinct(cls, secrets: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for name in secrets:
            if name in info.data.get("env", {}):
                raise ValueError(
                    TranslatableText("secret-in-env", "{name} is in env, too: leave it out there", name=name)
                )
        return tuple(dict.fromkeys(secrets))

    @model_validator(mode="after")
    def _work(self) -> Self:
        if (self.recipe is None) == (self.command is None):
            raise ValueError(
                TranslatableText("recipe-or-command", "give either a recipe (the built-in trainer) or a command")
            )
        if self.recipe is not None and self.launcher not in {Launcher.AUTO, Launcher.TORCHRUN}:
            raise ValueError(
                TranslatableText("recipe-launcher", "a recipe is always launched with torchrun: leave launcher out")
            )
        if self.recipe is not None and self.resume.args:
            raise ValueError(TranslatableText("recipe-resume", "a recipe resumes by itself: leave resume out"))
        if self.recipe is not None:
            self._fits(self.recipe)
        if self.code is not None and self.live is not None:
            raise ValueError(TranslatableText("code-live", "code and live exclude each other: keep one of them"))
        if self.code is not None and not SNAPSHOT_ID.fullmatch(self.code):
            raise ValueError(
                TranslatableText(
                    "code-id",
                    "code must be the id of an uploaded snapshot (snap-…): submit with `yard submit`, which uploads "
                    "the folder, or use live: /absolute/folder",
                )
            )
        if self.live is not None and not self.live.startswith("/"):
            raise ValueError(TranslatableText("live-absolute", "live must be an absolute folder"))
        return self

    @model_validator(mode="after")
    def _alone(self) -> Self:
        if not self.isolated:
            return self
        if self.resources.nodes > 1:
            raise ValueError(
                TranslatableText(
                    "isolated-nodes",
                    "network isolated keeps a job to one node, but resources.nodes is {nodes}: take resources.nodes "
                    "1, or leave network out",
                    nodes=self.resources.nodes,
                )
            )
        if self.resources.network_interface is not None:
            raise ValueError(
                TranslatableText(
                    "isolated-interface",
                    "network isolated has no interface but its own loopback: leave resources.network_interface out",
                )
            )
        return self

    def _fits(self, recipe: Recipe) -> None:
        processes = recipe.strategy.processes(self.resources.gpus)  # raises when they do not fit
        if self.resources.nodes > 1 and recipe.rendezvous == "file":
            raise ValueError(
                TranslatableText(
                    "rendezvous-file",
                    "recipe.rendezvous file needs a folder that all nodes share: take rendezvous: env or tcp",
                )
            )
        if self.resources.nodes > 1 and not recipe.strategy.spans_nodes:
            raise ValueError(
                TranslatableText(
                    "strategy-nodes",
                    "resources.nodes is {nodes}, but recipe.strategy {strategy} keeps to one node: take "
                    "resources.nodes 1, or strategy: ddp",
                    nodes=self.resources.nodes,
                    strategy=recipe.strategy.name,
                )
            )
        recipe.strategy.check_ranks(self.resources.nodes * processes)
        if recipe.backend == "nccl" and self.resources.gpus == 0:
            raise ValueError(
                TranslatableText(
                    "nccl-gpus", "recipe.backend nccl needs GPUs, but resources.gpus is 0: take backend: auto or gloo"
                )
            )

    @property
    def read_trackers(self) -> tuple[Tracker, ...]:
        """The trackers whose files are read."""
        if isinstance(self.trackers, bool):
            return tuple(Tracker) if self.trackers else ()
        return self.trackers

    @property
    def isolated(self) -> bool:
        """True if its processes have a network of their own."""
        return self.network is Network.ISOLATED

    @property
    def local_world_size(self) -> int:
        """Processes on each node: what the strategy asks for, one per GPU under torchrun, else one."""
        if self.recipe is not None:
            return self.recipe.strategy.processes(self.resources.gpus)
        return max(1, self.resources.gpus) if self.launcher.ranked else 1

    @property
    def world_size(self) -> int:
        """Processes of the job on all nodes."""
        return self.resources.nodes * self.local_world_size

    @property
    def effective_batch(self) -> int | None:
        """Samples of a step of a recipe's optimizer; None for a command."""
        if self.recipe is None:
            return None
        return self.recipe.effective_batch(self.world_size, self.resources.nodes * self.resources.gpus)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a spec, for editors and programs."""
    return JobSpec.model_json_schema()
