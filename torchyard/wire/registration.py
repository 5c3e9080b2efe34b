"""Registration of a node."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from torchyard.wire.devices import Device
from torchyard.wire.finding import Finding
from torchyard.wire.protocol import Message


class Identity(Message):
    """Identity of a node, which proves that silence was death."""

    node_id: str
    home_id: str
    boot_id: str
    pid_namespace: str


class Capability(StrEnum):
    """Features of a worker beyond those that all have; one that leaves a word out is older, and gets no such jobs."""

    #: Jobs that have part of a GPU (`resources.gpu_share`).
    GPU_SHARE = "gpu-share"
    #: Recipes with `backend: mpi`: the worker's torch was built with MPI.
    MPI = "mpi"
    #: Jobs of users with a UNIX account, and no others: the worker runs each job as its user's own.
    UNIX_ACCOUNTS = "unix-accounts"
    #: The kernel holds jobs to `resources.memory`; without it the node looks every two seconds.
    MEMORY_LIMIT = "memory-limit"
    #: The kernel holds jobs to `resources.cpus`.
    CPU_LIMIT = "cpu-limit"
    #: The kernel bounds the number of a job's processes.
    PROCESS_LIMIT = "process-limit"
    #: Jobs can open no GPUs but their own.
    GPU_LIMIT = "gpu-limit"
    #: Jobs with `network: isolated`: the worker is root, and the kernel lets it make network namespaces.
    NETWORK_ISOLATION = "network-isolation"
    #: Jobs that name secrets (`secrets`).
    SECRETS = "secrets"
    #: Jobs with `warm_start: false`.
    WARM_START = "warm-start"


class Register(Message):
    """``POST /agent/register``: first message of a worker; answered by `Registered`."""

    node: str
    identity: Identity
    version: str
    hostname: str
    devices: list[Device]
    cpus: int
    memory: int
    runs_as_root: bool
    #: Words of the node's administrator that jobs may ask for.
    labels: list[str] = []
    #: Of `Capability`, and words that only a newer service knows.
    capabilities: list[str] = []
    #: Why the kernel holds jobs to no limits here; None where it does.
    unenforced: Annotated[str, Field(max_length=1000)] | None = None
    #: What that is made of; None where it is, and of an older node.
    unenforced_finding: Finding | None = None


class Registered(Message):
    """Settings that a worker gets from the service."""

    installation: str
    broker_url: str
    broker_key_prefix: str
    heartbeat_s: float
    #: Folder of the artifact store's inbox as the service sees it, and the content of its probe file: a worker that
    #: reads the same there may place files in it instead of uploading them.
    inbox: str
    inbox_probe: str
    #: Bytes that a node's disk is to keep free, unless the node's own setting says otherwise. None: not told.
    disk_floor: int | None = None
