"""Job specs, sweeps and the sharing policy: plain data that people write as YAML or JSON."""

from torchyard.spec.base import MAX_NAME, NAME, Model, Ref, Tag, word
from torchyard.spec.checkpoints import CHECKPOINT_PLACEHOLDER, CheckpointPolicy, KeepBest, Resume
from torchyard.spec.command import ENV_NAME, RESERVED_ENV, SHELL_WORDS, Command, Environment, Launcher
from torchyard.spec.job import (
    KEEP,
    PRIORITY_RANK,
    SNAPSHOT_ID,
    After,
    HangPolicy,
    JobSpec,
    Network,
    OutputPattern,
    Priority,
    Tracker,
    json_schema,
)
from torchyard.spec.resources import ALL, MAX_NODES, Resources

__all__ = [
    "ALL",
    "CHECKPOINT_PLACEHOLDER",
    "ENV_NAME",
    "KEEP",
    "MAX_NAME",
    "MAX_NODES",
    "NAME",
    "PRIORITY_RANK",
    "RESERVED_ENV",
    "SHELL_WORDS",
    "SNAPSHOT_ID",
    "After",
    "CheckpointPolicy",
    "Command",
    "Environment",
    "HangPolicy",
    "JobSpec",
    "KeepBest",
    "Launcher",
    "Model",
    "Network",
    "OutputPattern",
    "Priority",
    "Ref",
    "Resources",
    "Resume",
    "Tag",
    "Tracker",
    "json_schema",
    "word",
]
