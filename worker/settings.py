"""Settings of a worker, from its arguments and ``TORCHYARD_*`` variables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from torchyard import home, settingsfile
from torchyard.quantities import parse_size
from torchyard.settingsfile import AT_ONCE
from torchyard.spec import Resources
from worker.devices.foreign import ForeignProcesses, Policy
from worker.devices.trespass import Policy as TrespassPolicy
from worker.exceptions import UnavailableError
from worker.forward.written import OutputLimits


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """Settings of one worker."""

    name: str
    """The node's name."""
    home: Path
    """Folder of the attempts and caches; on a local disk."""
    url: str | None = None
    """The service; without it the one that runs in ``TORCHYARD_HOME``."""
    token_file: Path
    """File of the node token."""
    invitation: str | None = field(default=None, repr=False)
    """One-time token to join with, where there is no node token yet; ``-``: standard input has it."""
    cpu_slots: int | None = None
    """CPU slots to offer where there is no GPU; None: as many as fit."""
    redis_url: str | None = None
    """Redis, where it is reached otherwise than the service says; it tells the login if this has none."""
    one_trust_domain: bool = False
    """Jobs of people without a UNIX account here run as the worker's own."""
    root_jobs: bool = False
    """Jobs of people whose account is root run as root."""
    labels: tuple[str, ...] = ()
    """Words that jobs may ask for (`resources.labels`)."""
    disk_floor: int | None = None
    """Bytes that this node's disk keeps free; None: what the service says."""
    disk_limit: int | None = None
    """Bytes of disk that an attempt may take; None: no limit."""
    user_disk_limit: int | None = None
    """Bytes of disk that the running attempts of one user may take together; None: no limit."""
    job_env: tuple[str, ...] = ()
    """Names of variables that jobs get from the worker's environment besides the usual ones."""
    cgroups: bool = True
    """Hold jobs to their limits by the kernel's cgroups, where there are some."""
    confine_gpus: bool = False
    """Let jobs open no GPUs but their own."""
    foreign: ForeignProcesses = field(default_factory=ForeignProcesses)
    """What is done with GPUs that processes from outside of the queue use."""
    trespass: TrespassPolicy = "warn"
    """What is done with attempts that use more of the GPUs than they were given."""
    notify_command: str | None = None
    """Line for the shell that tells the owner of a process from outside of the queue."""
    process_limit: int | None = None
    """Processes and threads of one attempt; None: `worker.limits.node.default_processes`."""
    warm_start: bool = True
    """Fork jobs that use PyTorch from processes that have it loaded."""
    limits: OutputLimits = field(default_factory=OutputLimits)
    """How much of what a job writes goes to the store by itself."""
    given: "WorkerEnvironment" = field(
        default_factory=lambda: WorkerEnvironment.model_construct(),  # noqa: PLW0108  the class comes below
        repr=False,
    )
    """Options, variables and file, of which these are made."""
    options: frozenset[str] = frozenset()
    """Names of settings that options of the command line say."""

    @property
    def attempts(self) -> Path:
        """Folder that holds one folder for each attempt."""
        return self.home / "attempts"

    def take_over(self, fresh: "WorkerSettings") -> "WorkerSettings":
        """Return these settings with what counts at once of others."""
        found = settingsfile.merged(self.given, fresh.given)
        before, after = (replace(self, given=each, **_fields(each)) for each in (self.given, found))
        differ = [each.name for each in fields(self) if getattr(before, each.name) != getattr(after, each.name)]
        return replace(self, **{name: getattr(after, name) for name in differ})

    def address(self) -> str:
        """The service's URL; raises `UnavailableError` while it is not known."""
        found = self.url or (home.read_address() or {}).get("url")
        if not found:
            raise UnavailableError(f"no service has run in {home.root()} yet: start `yard up`, or give --join URL")
        return str(found)

    def token(self) -> str:
        """The node token; raises `UnavailableError` while there is none."""
        try:
            token = self.token_file.read_text().strip()
        except OSError as error:
            raise UnavailableError(f"the node token cannot be read: {error}; give --token-file FILE") from error
        if not token:
            raise UnavailableError(f"{self.token_file} is empty: put the node's token into it")
        return token


def from_environment(
    *,
    name: str | None,
    join: str | None,
    token_file: Path | None,
    folder: Path | None,
    cpu_slots: int | None,
    labels: Sequence[str] | None = None,
    invitation: str | None = None,
) -> WorkerSettings:
    """Settings of this process: arguments first, then its environment, then the embedded stack's defaults.

    ValueError for a label that no job could ask for, and for limits that are none.
    """
    words = None if labels is None else tuple(labels)
    said = {"url": join, "node_token_file": token_file, "cpu_slots": cpu_slots, "labels": words}
    options = {name: value for name, value in said.items() if value is not None}
    found = read().model_copy(update=options)
    return WorkerSettings(
        name=name or home.node_name(),
        home=(folder or home.worker_folder()).absolute(),
        url=found.url,
        invitation=invitation,
        token_file=found.node_token_file or home.node_token_file(),
        given=found,
        options=frozenset(options),
        **_fields(found),
    )


def _fields(found: "WorkerEnvironment") -> dict[str, Any]:
    """Return the fields of the settings that follow from one or two variables each."""
    names = {each.name for each in fields(WorkerSettings)} & set(WorkerEnvironment.model_fields) - {"url"}
    return {name: getattr(found, name) for name in names} | {
        "foreign": ForeignProcesses(policy=found.foreign_processes, tolerated=found.foreign_memory),
        "labels": _labels(found.labels),
        "limits": OutputLimits(total=found.output_limit, every_s=found.output_every_s),
    }


def read() -> "WorkerEnvironment":
    """Read variables and file; ValueError for what cannot be read."""
    return settingsfile.from_environment(WorkerEnvironment, "worker")


def problems() -> Iterator[str]:
    """Yield what is wrong with the settings of this process, each with its mend."""
    try:
        found = read()
        _labels(found.labels)
    except ValueError as error:
        yield from str(error).splitlines()
        return
    file = found.node_token_file
    if file is not None and not file.is_file():
        yield f"node_token_file: there is no file {file}: `yard token create NAME --scope node --node NODE > {file}`"
    elif file is not None and file.stat().st_mode & 0o077:
        yield f"node_token_file: other accounts can read {file}: `chmod 0600 {file}`, and make a new token"


def _labels(given: Sequence[str]) -> tuple[str, ...]:
    labels = tuple(dict.fromkeys(filter(None, map(str.strip, given))))
    try:
        return Resources(labels=labels).labels
    except ValidationError as error:
        problem = error.errors()[0]
        raise ValueError(f"labels: {problem['input']!r}: {problem['msg']}") from error


class WorkerEnvironment(BaseSettings):
    """Variables of a worker, each named ``TORCHYARD_`` and its field; an empty one counts as absent."""

    model_config = SettingsConfigDict(env_prefix=settingsfile.PREFIX, env_ignore_empty=True, validate_default=False)

    url: str | None = Field(
        default=None, description="The service (`--join`); without it the one that runs in `TORCHYARD_HOME`."
    )
    node_token_file: Path | None = Field(
        default=None,
        description="File of the node token (`--token-file`); without it `node.token` in `TORCHYARD_HOME`.",
    )
    cpu_slots: int | None = Field(
        default=None, description="CPU slots to offer (`--cpu-slots`); without it as many as fit where there is no GPU."
    )
    redis_url: str | None = Field(
        default=None,
        description="Redis, where it is reached otherwise than the service says; without a password, which it tells.",
    )
    one_trust_domain: bool = Field(
        default=False,
        description="Jobs of people without a UNIX account here run as the worker's own, which everybody who "
        "may submit can then act as.",
    )
    root_jobs: bool = Field(
        default=False,
        description="Jobs of whoever has started a stack as root, and has no other account, run as root. `yard up` "
        "sets it unless it is set.",
    )
    labels: Annotated[tuple[str, ...], NoDecode, BeforeValidator(settingsfile.words)] = Field(
        json_schema_extra=AT_ONCE,
        default=(),
        description="Words that jobs may ask for (`resources.labels`), between commas.",
    )
    job_env: Annotated[tuple[str, ...], NoDecode, BeforeValidator(settingsfile.words)] = Field(
        default=(),
        description="Names of variables that jobs get from the worker's environment besides the usual ones, between "
        "commas.",
    )
    disk_floor: Annotated[int, BeforeValidator(parse_size)] | None = Field(
        json_schema_extra=AT_ONCE,
        default=None,
        description="Free disk that this node keeps; without it what the service says.",
    )
    cgroups: bool = Field(
        default=True, description="Jobs are held to memory, CPUs and processes by cgroups, where there are some."
    )
    confine_gpus: bool = Field(
        default=False,
        description="Jobs can open no GPUs but their own, which CUDA then numbers from 0; by cgroups, not with MIG.",
    )
    foreign_processes: Policy = Field(
        json_schema_extra=AT_ONCE,
        default=ForeignProcesses.policy,
        description="GPUs that processes from outside of the queue use: `use` gives jobs what memory is free, `wait` "
        "keeps jobs off until they end, `exclude` until an administrator returns the GPU.",
    )
    foreign_memory: Annotated[int, BeforeValidator(parse_size)] = Field(
        json_schema_extra=AT_ONCE,
        default=ForeignProcesses.tolerated,
        description="What such processes may hold of a GPU before `wait` and `exclude` keep jobs off it.",
    )
    trespass: TrespassPolicy = Field(
        json_schema_extra=AT_ONCE,
        default="warn",
        description="Jobs that use GPUs which they were not given, or more of a shared one than their `gpu_share`: "
        "`warn` names them, `stop` ends them as well.",
    )
    notify_command: str | None = Field(
        json_schema_extra=AT_ONCE,
        default=None,
        description="Line for the shell that tells the owner of a process from outside of the queue on a GPU, by mail "
        "or webhook, with `TORCHYARD_OWNER`, `TORCHYARD_NODE`, `TORCHYARD_GPU`, `TORCHYARD_PID` and "
        "`TORCHYARD_MESSAGE` in its environment. Terminals at which the owner is logged in are written to in any case.",
    )
    process_limit: int | None = Field(
        default=None,
        ge=16,
        description="Processes and threads of one attempt, by cgroups; without it 32768, and at most a quarter of "
        "those that the kernel can number.",
    )
    warm_start: bool = Field(
        default=True,
        description="Jobs are forked from a process of their account that has loaded PyTorch "
        "already; it takes some 400 MB for each environment that jobs use.",
    )
    disk_limit: Annotated[int, BeforeValidator(parse_size)] | None = Field(
        json_schema_extra=AT_ONCE,
        default=None,
        description="Disk that the folder of one attempt may take; without it no limit.",
    )
    user_disk_limit: Annotated[int, BeforeValidator(parse_size)] | None = Field(
        json_schema_extra=AT_ONCE,
        default=None,
        description="Disk that the folders of one user's running attempts may take together on this node: the one that "
        "grew most lately is ended; without it no limit.",
    )
    output_limit: Annotated[int, BeforeValidator(parse_size)] = Field(
        json_schema_extra=AT_ONCE,
        default=OutputLimits().total,
        description="How much of what an attempt writes goes to the store by itself.",
    )
    output_every_s: float = Field(
        json_schema_extra=AT_ONCE,
        default=OutputLimits().every_s,
        description="Seconds between two looks for new files of a running job.",
    )
