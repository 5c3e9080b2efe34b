"""The job's environment, and the folder that lets it import the in-job library and nothing else of ours."""

import compileall
import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torchyard
from torchyard import home
from torchyard.ids import JobId
from torchyard.injob import entry_points, layout
from torchyard.spec import JobSpec
from torchyard.wire import Device, DeviceKind, is_mig_instance
from worker.attempts.folder import AttemptFolder
from worker.launching.identity import UnixUser
from worker.launching.inherited import inherited
from worker.launching.interpreter import Interpreter
from worker.launching.rendezvous import NodeRendezvous
from worker.shim.network import LOOPBACK
from worker.trackers import settings as trackers


@dataclass(frozen=True, kw_only=True)
class EnvironmentInputs:
    """Inputs of a job's environment."""

    own: Mapping[str, str]
    """The worker's environment."""
    passed: Sequence[str] = ()
    """Names in it that an administrator passes on."""
    folder: AttemptFolder
    spec: JobSpec
    job: JobId
    interpreter: Interpreter
    injob: Path
    """The folder that `install_injob` made."""
    worker_bin: Path
    """Folder of the worker's own programs, which stay off the job's PATH unless the job uses them."""
    devices: Sequence[Device]
    threads: int
    """CPU cores per rank."""
    confined: bool = False
    """Whether the job can open no GPUs but its own."""
    restores: bool
    identity: UnixUser | None
    temporary: Path
    """The attempt's own folder for temporary files."""
    tracker_runs: Mapping[str, str] = field(default_factory=dict)
    """The only run of each tracker that the job has made so far."""
    disk_floor: int | None = None
    """Bytes that the node's disk keeps free; None: nobody has said."""
    rendezvous: NodeRendezvous | None = None
    """Where the ranks of several nodes meet; None on one node."""


def build(inside: EnvironmentInputs) -> dict[str, str]:
    """The environment of every process of the job."""
    inside = replace(inside, own=inherited(inside.own, inside.passed))
    return (
        dict(inside.own)
        | _person(inside.identity)
        | _temporary(inside)
        | {"OMP_NUM_THREADS": str(inside.threads), "PYTHONUNBUFFERED": "1"}
        | trackers.environment(inside.folder, inside.spec, inside.own, inside.tracker_runs)
        | inside.spec.env
        | _interpreter(inside)
        | _attempt(inside)
        | _devices(inside.devices, confined=inside.confined)
        | _network(inside)
        | _several_nodes(inside)
    )


def _person(identity: UnixUser | None) -> dict[str, str]:
    if identity is None:
        return {}
    return {"HOME": identity.home, "USER": identity.name, "LOGNAME": identity.name}


def _temporary(inside: EnvironmentInputs) -> dict[str, str]:
    """A TMPDIR of its own: torchrun leaves a folder there for each run, and a killed program all that it has made.

    What torch compiles it keeps there as well, for the next run to find: that stays where it is without us.
    """
    if "TMPDIR" in inside.spec.env:
        return {}
    made = {"TMPDIR": str(inside.temporary)}
    if "TORCHINDUCTOR_CACHE_DIR" not in inside.own:
        user = inside.identity.name if inside.identity else home.account_name()
        made["TORCHINDUCTOR_CACHE_DIR"] = str(inside.temporary.parent / f"torchinductor_{user}")
    return made


def _interpreter(inside: EnvironmentInputs) -> dict[str, str]:
    given = inside.spec.env
    bin_folder = inside.interpreter.path.parent
    path = given.get("PATH") or inside.own.get("PATH") or os.defpath
    words = [word for word in path.split(":") if word not in {str(inside.worker_bin), str(bin_folder)}]
    made = {"PATH": ":".join([str(bin_folder), *words])}
    if inside.interpreter.prefix is not None:
        made[inside.interpreter.prefix_name] = str(inside.interpreter.prefix)
    search = [] if inside.spec.recipe is not None else [str(inside.injob)]
    search += [given["PYTHONPATH"]] if given.get("PYTHONPATH") else []
    return made | ({"PYTHONPATH": ":".join(search)} if search else {})


def _attempt(inside: EnvironmentInputs) -> dict[str, str]:
    folder, every = inside.folder, inside.spec.checkpoint.every
    made = {
        layout.ATTEMPT_ID: folder.attempt_id,
        layout.JOB_ID: inside.job,
        layout.ATTEMPT_DIR: str(folder.path),
        layout.OUTPUT_DIR: str(folder.at(layout.OUTPUT)),
        layout.DEVICES: str(len(inside.devices)),
    }
    if inside.restores:
        made[layout.RESTORE_DIR] = str(folder.at(layout.RESTORE))
    if every is not None:
        made[layout.CHECKPOINT_EVERY] = str(every)
    if (best := inside.spec.checkpoint.keep_best) is not None:
        made[layout.KEEP_BEST] = f"{best.mode} {best.metric}"
    if inside.disk_floor is not None:
        made[layout.DISK_FLOOR] = str(inside.disk_floor)
    if inside.spec.resources.gpu_share is not None:
        made[layout.GPU_SHARE] = str(inside.spec.resources.gpu_share)
    return made


def _devices(devices: Sequence[Device], *, confined: bool) -> dict[str, str]:
    gpus = [device for device in devices if device.kind is DeviceKind.GPU]
    # CUDA passes over GPUs that it cannot open, and numbers the others.
    seen = sorted(gpu.index for gpu in gpus)
    # A MIG instance has no index of its own.
    names = [
        gpu.uuid if is_mig_instance(gpu.uuid) else str(seen.index(gpu.index) if confined else gpu.index) for gpu in gpus
    ]
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(names)}


def _network(inside: EnvironmentInputs) -> dict[str, str]:
    """The interface of gloo, NCCL and RPC: the spec's, else what it or the node has set, else the way to node 0.

    Ranks that are all on this node keep to the loopback interface, where no other machine reaches them; a job with a
    network of its own has no other.
    """
    asked, rendezvous = inside.spec.resources.network_interface, inside.rendezvous
    alone = LOOPBACK if inside.spec.launcher.ranked or inside.spec.isolated else None
    found = asked or (rendezvous.interface if rendezvous else alone)
    if found is None:
        return {}
    # "=" makes NCCL take the name as a whole; without it eth1 means eth10 too.
    names = {"GLOO_SOCKET_IFNAME": found, "NCCL_SOCKET_IFNAME": f"={found}", "TP_SOCKET_IFNAME": found}
    given = inside.spec.env if asked else inside.spec.env.keys() | inside.own.keys()
    return {name: value for name, value in names.items() if name not in given}


def _several_nodes(inside: EnvironmentInputs) -> dict[str, str]:
    """Return what torchrun tells each rank; a program that is started once a node is a rank itself."""
    rendezvous = inside.rendezvous
    if rendezvous is None:
        return {}
    made = {"NODE_RANK": str(rendezvous.node_rank)}
    if inside.spec.launcher.ranked:
        return made
    return made | {
        "MASTER_ADDR": rendezvous.address,
        "MASTER_PORT": str(rendezvous.port),
        "RANK": str(rendezvous.node_rank),
        "GROUP_RANK": str(rendezvous.node_rank),
        "LOCAL_RANK": "0",
        "WORLD_SIZE": str(rendezvous.nodes),
        "LOCAL_WORLD_SIZE": "1",
    }


def install_injob(home: Path) -> Path:
    """Copy the in-job library to ``<home>/injob-<hash>/torchyard``; return the folder for PYTHONPATH.

    Beside it lie the entry points by which frameworks find it. A new version gets a folder of its own, so jobs that run
    keep theirs. It is compiled for this interpreter's version, which another account's job could not keep there.
    """
    package = Path(torchyard.__file__).parent
    sources = [package / "__init__.py", *sorted((package / "injob").glob("*.py"))]
    contents = {f"torchyard/{source.relative_to(package)}": source.read_bytes() for source in sources}
    contents |= _distribution(contents["torchyard/injob/entry_points.py"])
    digest = hashlib.sha256(b"".join(contents.values())).hexdigest()
    target = home / f"injob-{digest[:16]}"
    if not target.exists():
        temporary = home / f".injob-{os.getpid()}-{os.urandom(4).hex()}"
        for name, content in contents.items():
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        compileall.compile_dir(temporary, quiet=2, stripdir=str(temporary), prependdir=str(target))
        _rename_unless_there(temporary, target)
    return target


def _distribution(module: bytes) -> dict[str, bytes]:
    """The entry points as those of an installed distribution, and their module under its own name."""
    groups = (f"[{group}]\ntorchyard = {entry_points.MODULE}:{name}\n" for group, name in entry_points.GROUPS.items())
    folder = "torchyard_injob-1.dist-info"
    return {
        f"{entry_points.MODULE}.py": module,
        f"{folder}/METADATA": b"Metadata-Version: 2.1\nName: torchyard-injob\nVersion: 1\n",
        f"{folder}/entry_points.txt": "".join(groups).encode(),
    }


def _rename_unless_there(temporary: Path, target: Path) -> None:
    try:
        temporary.rename(target)
    except OSError:
        shutil.rmtree(temporary)
        if not target.exists():
            raise
