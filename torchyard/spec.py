"""The job spec: what a person or a program submits, as YAML or JSON.

A spec is plain data. Every field has a default except the work itself: either a `recipe` (the built-in
trainer) or a `command` (one's own program).
"""

import re
import shlex
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from torchyard.quantities import Duration, Interval, Size
from torchyard.recipe import Recipe
from torchyard.sweeps import ENVIRONMENT as PARAMETERS
from torchyard.sweeps import Sweep

MAX_NAME = 63
NAME = rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_NAME - 1}}}"
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Names that belong to the launcher; a spec that sets them would escape its allocation.
RESERVED_ENV = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "NODE_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
    }
)
#: What only a shell understands; a command is started without one.
SHELL_WORDS = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>", "2>&1"})
Ref = Annotated[str, Field(min_length=1, max_length=64)]
Tag = Annotated[str, Field(min_length=1, max_length=100)]
OutputPattern = Annotated[str, Field(min_length=1, max_length=1000)]
MAX_NODES = 64
#: `resources.gpus` of a submission: as many as a node has. What is stored is a number.
ALL = "all"
#: A job with this tag keeps its files, however old it is.
KEEP = "keep"
SNAPSHOT_ID = re.compile(r"snap-[0-9a-z]{26}")


class Priority(StrEnum):
    """Priority classes, highest first in the queue."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    URGENT = "urgent"


PRIORITY_RANK: dict[Priority, int] = {p: rank for rank, p in enumerate(Priority)}


class Launcher(StrEnum):
    """How the command is started."""

    #: Found out from the command and its code when the job is submitted; what is stored is one of the others.
    AUTO = "auto"
    #: One process per GPU under ``torchrun``.
    TORCHRUN = "torchrun"
    #: The same for scripts that take their number as an argument, ``--local_rank`` or ``--local-rank``, whichever they
    #: declare: as ``python -m torch.distributed.launch`` started them.
    LAUNCH = "launch"
    #: One Python process.
    PYTHON = "python"
    #: Any program, as it is.
    NONE = "none"

    @property
    def ranked(self) -> bool:
        """Whether it starts one process per GPU; that holds of what is not found out yet, too."""
        return self in {Launcher.AUTO, Launcher.TORCHRUN, Launcher.LAUNCH}


class Tracker(StrEnum):
    """Experiment trackers whose files the node reads."""

    TENSORBOARD = "tensorboard"
    WANDB = "wandb"
    MLFLOW = "mlflow"
    TRACKIO = "trackio"


def word(value: Any) -> Any:
    """A number or truth value as the text that a command line or an environment has."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _words(given: Any) -> Any:
    """The words of a command; one string is split as a shell would, which then does nothing else for it."""
    if isinstance(given, str):
        try:
            given = shlex.split(given)
        except ValueError as error:
            raise ValueError(
                f"{given!r} cannot be split into words ({error}): write a list, [program, argument]"
            ) from None
        if shells := SHELL_WORDS.intersection(given):
            raise ValueError(f"no shell reads {min(shells)} here: write [sh, -c, 'all of it in quotes']")
    return [word(each) for each in given] if isinstance(given, list | tuple) else given


def _variables(given: Any) -> Any:
    return {name: word(value) for name, value in given.items()} if isinstance(given, dict) else given


Command = Annotated[
    tuple[str, ...],
    Field(min_length=1),
    BeforeValidator(_words, json_schema_input_type=tuple[str | float | bool, ...] | str),
]
Environment = Annotated[
    dict[str, str],
    Field(max_length=256),
    BeforeValidator(_variables, json_schema_input_type=dict[str, str | float | bool]),
]


def _decided(given: Any) -> Any:
    if given == ALL:
        raise ValueError("all is made a number by the service when a job is submitted: give a number here")
    return given


_Gpus = Annotated[int, Field(ge=0, le=1024)]


class Model(BaseModel):
    """Base of every model in the spec: immutable, and strangers are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Resources(Model):
    """What the job needs of a node."""

    gpus: Annotated[_Gpus, BeforeValidator(_decided, json_schema_input_type=_Gpus | Literal["all"])] = 1
    """GPUs (or CPU slots on a node without GPUs), exclusively the job's. 0 runs beside the GPUs. `all`: as many as a
    node can give, a number from the submission on."""
    nodes: Annotated[int, Field(ge=1, le=MAX_NODES)] = 1
    """Nodes, each with as many GPUs; they start and end together."""
    network_interface: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:@-]{1,64}$")] | None = None
    """Interface that the ranks reach each other through; without it, the one that leads to the first node."""
    gpu_memory_min: Size | None = None
    """Memory that every GPU must have."""
    gpu_share: Annotated[Size, Field(gt=0)] | None = None
    """Memory of each GPU that the job needs: it shares the GPU with others; without it, the GPU is its own."""
    gpu_type: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Part of the GPUs' name, such as ``H200``; large and small letters are the same."""
    labels: Annotated[tuple[Tag, ...], Field(max_length=32)] = ()
    """Labels that every node of the job must have."""
    cpus: Annotated[int, Field(ge=1)] | None = None
    """CPU cores."""
    memory: Size | None = None
    """Main memory."""


class After(Model):
    """Jobs that this one waits for."""

    jobs: Annotated[tuple[Ref, ...], Field(min_length=1, max_length=1000)]
    """Ids or numbers of jobs or sweeps."""
    need: Literal["all", "any"] = "all"
    """Whether all of them must have ended, or one is enough."""
    when: Literal["success", "end"] = "success"
    """Whether they must succeed, or may end in any way; a trial that its sweep stopped early has done its part."""


class HangPolicy(Model):
    """What is done with a run that makes no step for ``max(after, factor * its median step)``."""

    after: Duration = 300
    """No run is taken for hanging before this."""
    factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 20
    """Times its median step."""
    action: Literal["stop", "show"] = "stop"
    """Once its stacks are dumped: stop it (retries count), or only show that it hangs."""


class KeepBest(Model):
    """Which checkpoint counts as the best."""

    metric: str
    """Name of the metric, as passed to ``torchyard.checkpoint(metrics=…)``."""
    mode: Literal["min", "max"] = "max"
    """Whether small or large values are good."""


class CheckpointPolicy(Model):
    """When checkpoints are due and which are kept."""

    every: Interval | None = None
    """A checkpoint is due this long after the last one. Without it, a script that calls `torchyard.attach` takes its
    first one after two minutes, others as often as costs 2 % of the time at most, and one at its end; any other only
    when asked for. With `never`, all only when asked for."""
    keep_last: Annotated[int, Field(ge=1, le=1000)] = 2
    """The newest ones to keep."""
    keep_best: KeepBest | None = None
    """The best one is kept beside the newest."""


#: In `resume.args`: where the checkpoint lies.
CHECKPOINT_PLACEHOLDER = "{checkpoint}"


class Resume(Model):
    """How a program is told of the checkpoint that it goes on from, where its framework is not known."""

    args: Annotated[tuple[str, ...], Field(max_length=64)] = ()
    """Put behind the command of an attempt that resumes; ``{checkpoint}`` is the path of the checkpoint."""

    @field_validator("args")
    @classmethod
    def _placeholders(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        for word in args:
            for found in re.findall(r"\{\w*\}", word):
                if found != CHECKPOINT_PLACEHOLDER:
                    raise ValueError(
                        f"{found} is no placeholder: write {CHECKPOINT_PLACEHOLDER}, the only one there is"
                    )
        return args


class JobSpec(Model):
    """A training job."""

    name: Annotated[str, Field(pattern=f"^{NAME}$")] = "job"
    """Shown in lists; need not be unique."""
    project: Annotated[str, Field(pattern=f"^{NAME}$")] = "default"
    """The project whose share the job uses."""
    tags: Annotated[tuple[Tag, ...], Field(max_length=32)] = ()
    """Free words to filter by."""
    resources: Resources = Resources()
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
    priority: Priority = Priority.NORMAL
    time_limit: Duration | None = None
    """Running time after which the job is stopped."""
    start_limit: Annotated[Duration, Field(gt=0)] | None = None
    """Time in the queue after which a job that never started is given up."""
    idle_limit: Annotated[Duration, Field(gt=0)] | None = None
    """Time without any work of its GPUs after which the job is stopped."""
    hang: HangPolicy = HangPolicy()
    preemptible: bool | None = None
    """Whether it may be stopped in favour of another job and go on later; without it, only once it has written a
    checkpoint that was verified, or if it is restartable. If it must not be stopped, others lend it no time slices."""
    restartable: bool = False
    """It may be stopped at any time: it starts from its newest checkpoint, or from the beginning."""
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
                raise ValueError(f"{name!r} is not a name for an environment variable")
            if name in RESERVED_ENV or (name.startswith("TORCHYARD_") and name != PARAMETERS):
                raise ValueError(f"{name} is set by the launcher: leave it out")
        return env

    @field_validator("link")
    @classmethod
    def _links(cls, link: tuple[str, ...]) -> tuple[str, ...]:
        for path in link:
            if path.startswith("/") or ".." in path.split("/") or not path.strip("/."):
                raise ValueError(f"{path!r} must be a path inside the code folder, without '..'")
        return tuple(dict.fromkeys(str(PurePosixPath(path)) for path in link))

    @model_validator(mode="after")
    def _work(self) -> Self:
        if (self.recipe is None) == (self.command is None):
            raise ValueError("give either a recipe (the built-in trainer) or a command")
        if self.recipe is not None and self.launcher not in {Launcher.AUTO, Launcher.TORCHRUN}:
            raise ValueError("a recipe is always launched with torchrun: leave launcher out")
        if self.recipe is not None and self.resume.args:
            raise ValueError("a recipe resumes by itself: leave resume out")
        if self.recipe is not None:
            self._fits(self.recipe)
        if self.code is not None and self.live is not None:
            raise ValueError("code and live exclude each other: keep one of them")
        if self.code is not None and not SNAPSHOT_ID.fullmatch(self.code):
            raise ValueError(
                "code must be the id of an uploaded snapshot (snap-…): submit with `yard submit`, "
                "which uploads the folder, or use live: /absolute/folder"
            )
        if self.live is not None and not self.live.startswith("/"):
            raise ValueError("live must be an absolute folder")
        return self

    def _fits(self, recipe: Recipe) -> None:
        processes = recipe.strategy.processes(self.resources.gpus)  # raises when they do not fit
        if self.resources.nodes > 1 and recipe.rendezvous == "file":
            raise ValueError("recipe.rendezvous file needs a folder that all nodes share: take rendezvous: env or tcp")
        if self.resources.nodes > 1 and not recipe.strategy.spans_nodes:
            raise ValueError(
                f"resources.nodes is {self.resources.nodes}, but recipe.strategy {recipe.strategy.name} keeps to one "
                "node: take resources.nodes 1, or strategy: ddp"
            )
        recipe.strategy.check_ranks(self.resources.nodes * processes)
        if recipe.backend == "nccl" and self.resources.gpus == 0:
            raise ValueError("recipe.backend nccl needs GPUs, but resources.gpus is 0: take backend: auto or gloo")

    @property
    def read_trackers(self) -> tuple[Tracker, ...]:
        """The trackers whose files are read."""
        if isinstance(self.trackers, bool):
            return tuple(Tracker) if self.trackers else ()
        return self.trackers

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
