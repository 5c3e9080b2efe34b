"""Models of the REST API (``/api/v1``), one per resource. Times are RFC 3339 UTC, sizes bytes."""

from torchyard.api.artifacts import Checkpoint, CheckpointFileInfo, MissingBlobs, NewSnapshot, Output
from torchyard.api.attempts import Attempt, Buckets, LogStream, Member, Metrics, Series, Stacks
from torchyard.api.base import PREFIX, Item, Number, Page, Resource, Text
from torchyard.api.identity import (
    AuditEntry,
    NewProject,
    NewToken,
    NewUser,
    Project,
    Scope,
    Settings,
    SignIn,
    SignInCode,
    Token,
    TokenRequest,
    User,
)
from torchyard.api.jobs import Event, HeldDevice, Job, JobChanges, JobCounts, JobError, Progress, Rerun, Storage
from torchyard.api.live import LiveTopics
from torchyard.api.nodes import Holder, Node, NodeDevice
from torchyard.api.problems import FieldProblem, Problem
from torchyard.api.queue import Alternative, Calibration, QueueEntry, Reason, SourceCalibration, Why
from torchyard.api.sweeps import DryRun, Group, PlannedTrial

__all__ = [
    "PREFIX",
    "Alternative",
    "Attempt",
    "AuditEntry",
    "Buckets",
    "Calibration",
    "Checkpoint",
    "CheckpointFileInfo",
    "DryRun",
    "Event",
    "FieldProblem",
    "Group",
    "HeldDevice",
    "Holder",
    "Item",
    "Job",
    "JobChanges",
    "JobCounts",
    "JobError",
    "LiveTopics",
    "LogStream",
    "Member",
    "Metrics",
    "MissingBlobs",
    "NewProject",
    "NewSnapshot",
    "NewToken",
    "NewUser",
    "Node",
    "NodeDevice",
    "Number",
    "Output",
    "Page",
    "PlannedTrial",
    "Problem",
    "Progress",
    "Project",
    "QueueEntry",
    "Reason",
    "Rerun",
    "Resource",
    "Scope",
    "Series",
    "Settings",
    "SignIn",
    "SignInCode",
    "SourceCalibration",
    "Stacks",
    "Storage",
    "Text",
    "Token",
    "TokenRequest",
    "User",
    "Why",
]
