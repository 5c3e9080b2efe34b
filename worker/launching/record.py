"""``launch.json``: what a shim is to do, with absolute paths, since it knows nothing of ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchyard.injob import layout
from torchyard.spec import JobSpec
from torchyard.wire import Go, Launch
from worker import shim
from worker.attempts.folder import AttemptFolder
from worker.launching import interpreter, prepare
from worker.launching.identity import UnixUser

#: The wrapper of a rank under torchrun.
RANK = Path(shim.__file__).parent / "rank.py"
#: How long a stop waits for the first poll of a rank on a node whose ranks have not polled, before SIGTERM.
PATIENCE_S = 10.0


@dataclass(frozen=True, kw_only=True)
class PreparedAttempt:
    """An attempt that can start: all of it lies in its folder, and its other nodes are as far."""

    launch: Launch
    who: UnixUser | None
    python: interpreter.Interpreter
    cwd: Path
    threads: int
    go: Go = field(default_factory=lambda: Go(go=True))
    """Where the ranks of several nodes meet."""
    limits: dict[str, Any] = field(default_factory=dict)
    """What the shim needs to know of them, from `NodeLimits.create`."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values of the job's secrets: they go to the shim through a pipe, and into no file."""


def launch_record(
    folder: AttemptFolder, prepared: PreparedAttempt, command: list[str], env: dict[str, str]
) -> dict[str, Any]:
    """Return the content of ``launch.json``."""
    launch, who = prepared.launch, prepared.who
    torchrun = launch.spec.launcher.ranked
    logs = folder.at(layout.LOGS)
    ranks = prepare.ranks(launch)
    return {
        "argv": command,
        "python": str(prepared.python.path),
        "env": env,
        # torchrun looks for modules in its own working folder; the wrapper takes the ranks to theirs.
        "cwd": str(logs if torchrun else prepared.cwd),
        "output": str(logs / (layout.LAUNCHER_LOG if torchrun else layout.rank_log(ranks.start))),
        "torchrun": torchrun,
        "rank_program": str(RANK),
        "meets": _joining_ranks(launch.spec),
        "first_rank": ranks.start,
        "local_world_size": len(ranks),
        # Ranks of other nodes may have polled when none of this one has yet.
        "patience_s": PATIENCE_S if launch.spec.resources.nodes > 1 else 0.0,
        "uid": who.uid if who else None,
        "gid": who.gid if who else None,
        "groups": list(who.groups) if who else None,
        "time_limit_s": launch.spec.time_limit,
        "grace_s": launch.spec.grace,
        "devices": [device.uuid for device in launch.devices],
        "gpu_share": launch.spec.resources.gpu_share,
        "limits": prepared.limits,
        "isolated": launch.spec.isolated,
        "warm_start": launch.spec.warm_start,
        "log_limit": launch.spec.log_limit,
        "user": launch.user,
        "node_rank": launch.node_rank,
        "secrets": sorted(prepared.secrets),
        "trackers": list(launch.spec.read_trackers),
        "live": launch.spec.live,
        "paths": {
            name: str(folder.at(path))
            for name, path in {
                "shim": layout.SHIM,
                "command": layout.COMMAND,
                "control": layout.CONTROL,
                "result": layout.RESULT,
                "marks": layout.MARKS,
                "outcome": layout.OUTCOME,
                "unjoined": layout.UNJOINED,
            }.items()
        },
    }


def _joining_ranks(spec: JobSpec) -> int:
    """Ranks that should join a process group on this node; 0 where that cannot be seen, or is the trainer's affair."""
    alone = spec.resources.nodes == 1 and spec.command is not None
    return spec.local_world_size if alone and spec.launcher.ranked else 0
