import getpass
import subprocess
import sys
from pathlib import Path
from typing import Any

from torchyard.injob import entry_points, layout
from torchyard.spec import JobSpec
from torchyard.wire import Device, DeviceKind
from worker.attempts.folder import AttemptFolder
from worker.launching import environment
from worker.launching.identity import UnixUser
from worker.launching.interpreter import Interpreter
from worker.launching.rendezvous import NodeRendezvous

OWN = {
    "PATH": "/ty/bin:/usr/bin",
    "LANG": "C.UTF-8",
    "https_proxy": "http://proxy",
    "TORCHYARD_TOKEN": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "TORCHYARD_DATA": "/shared/data",
    "CELERY_BROKER_URL": "secret",
    "PYTHONPATH": "/ty/lib",
    "VIRTUAL_ENV": "/ty",
    "CUDA_VISIBLE_DEVICES": "0,1,2,3",
    "NOTIFY_SOCKET": "/run/systemd/notify",
}
VENV = Interpreter(path=Path("/env/bin/python"), prefix=Path("/env"))


def gpu(index: int, uuid: str | None = None) -> Device:
    return Device(uuid=uuid or f"GPU-{index}", index=index, kind=DeviceKind.GPU, name="H200", memory=1)


def build(spec: dict[str, Any] | None = None, **changed: Any) -> dict[str, str]:
    values: dict[str, Any] = {
        "own": OWN,
        "folder": AttemptFolder(Path("/home/attempts"), "att-1"),
        "spec": JobSpec.model_validate({"command": ["train.py"]} | (spec or {})),
        "job": "job-1",
        "interpreter": VENV,
        "injob": Path("/home/injob-1"),
        "worker_bin": Path("/ty/bin"),
        "devices": [gpu(2), gpu(0)],
        "threads": 4,
        "restores": False,
        "identity": None,
        "temporary": Path("/tmp/torchyard-1"),
    }
    return environment.build(environment.EnvironmentInputs(**(values | changed)))


def test_the_whole_environment_of_a_job() -> None:
    assert build() == {
        "PATH": "/env/bin:/usr/bin",
        "LANG": "C.UTF-8",
        "https_proxy": "http://proxy",
        "VIRTUAL_ENV": "/env",
        "PYTHONPATH": "/home/injob-1",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": "/tmp/torchyard-1",
        "TORCHINDUCTOR_CACHE_DIR": f"/tmp/torchinductor_{getpass.getuser()}",
        "OMP_NUM_THREADS": "4",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "2,0",
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "=lo",
        "TP_SOCKET_IFNAME": "lo",
        "TORCHYARD_DATA": "/shared/data",
        "TORCHYARD_DEVICES": "2",
        "TORCHYARD_ATTEMPT_ID": "att-1",
        "TORCHYARD_JOB_ID": "job-1",
        "TORCHYARD_ATTEMPT_DIR": "/home/attempts/att-1",
        "TORCHYARD_OUTPUT_DIR": "/home/attempts/att-1/job/output",
        "MLFLOW_TRACKING_URI": "file:///home/attempts/att-1/job/output/mlruns",
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "TRACKIO_DIR": "/home/attempts/att-1/job/output/trackio",
        "WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL": "1",
        "TORCHYARD_TRACKERS": "tensorboard,wandb,mlflow,trackio",
    }


def test_a_job_that_shares_its_gpus_knows_its_part() -> None:
    assert build({"resources": {"gpu_share": "8GiB"}})["TORCHYARD_GPU_SHARE"] == str(8 * 2**30)


MET = NodeRendezvous(nodes=2, node_rank=1, address="10.0.0.1", port=20001, interface="eth0")
SOCKETS = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


def sockets(spec: dict[str, Any] | None = None, **own: str) -> tuple[str | None, ...]:
    env = build(spec, rendezvous=MET, own=OWN | own)
    return tuple(env.get(name) for name in SOCKETS)


def test_gloo_and_nccl_take_the_way_to_the_first_node_unless_somebody_says_otherwise() -> None:
    assert sockets() == ("eth0", "=eth0")
    assert sockets({"env": {"NCCL_SOCKET_IFNAME": "ib"}}) == ("eth0", "ib")
    assert sockets(GLOO_SOCKET_IFNAME="eno1") == ("eno1", "=eth0")
    named = {"resources": {"nodes": 2, "network_interface": "ib0"}}
    assert sockets(named, GLOO_SOCKET_IFNAME="eno1") == ("ib0", "=ib0")


def test_the_ranks_of_one_node_keep_to_it_unless_somebody_says_otherwise() -> None:
    names = (*SOCKETS, "TP_SOCKET_IFNAME")
    env = build()
    assert [env[name] for name in names] == ["lo", "=lo", "lo"]
    assert "NODE_RANK" not in env
    assert build({"env": {"GLOO_SOCKET_IFNAME": "eth0"}})["GLOO_SOCKET_IFNAME"] == "eth0"
    assert build(own=OWN | {"NCCL_SOCKET_IFNAME": "ib0"})["NCCL_SOCKET_IFNAME"] == "ib0"
    assert build({"resources": {"network_interface": "eth0"}})["GLOO_SOCKET_IFNAME"] == "eth0"
    # Who starts processes of their own knows what they are to reach.
    assert not build({"launcher": "python"}).keys() & {*names}
    # They reach nothing else where the loopback interface is the only one.
    assert build({"launcher": "python", "network": "isolated"})["GLOO_SOCKET_IFNAME"] == "lo"


def test_a_program_that_is_started_once_a_node_is_a_rank() -> None:
    env = build({"launcher": "none", "resources": {"nodes": 2}}, rendezvous=MET)
    assert {name: env[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK")} == {
        "RANK": "1",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "1",
        "NODE_RANK": "1",
    }
    assert (env["MASTER_ADDR"], env["MASTER_PORT"]) == ("10.0.0.1", "20001")
    under_torchrun = build({"resources": {"nodes": 2}}, rendezvous=MET)
    assert "RANK" not in under_torchrun
    assert under_torchrun["NODE_RANK"] == "1"


def test_the_spec_is_on_top() -> None:
    env = build({"env": {"LANG": "de_DE.UTF-8", "OMP_NUM_THREADS": "1", "PATH": "/own", "PYTHONPATH": "/lib"}})
    assert (env["LANG"], env["OMP_NUM_THREADS"]) == ("de_DE.UTF-8", "1")
    assert (env["PATH"], env["PYTHONPATH"]) == ("/env/bin:/own", "/home/injob-1:/lib")


def test_what_torch_has_compiled_is_for_the_next_attempt_too() -> None:
    def places(spec: dict[str, Any] | None = None, **changed: Any) -> tuple[str | None, str | None]:
        env = build(spec, **changed)
        return env.get("TMPDIR"), env.get("TORCHINDUCTOR_CACHE_DIR")

    ada = UnixUser(name="ada", uid=1, gid=1, groups=(1,), home="/home/ada")
    assert places(identity=ada) == ("/tmp/torchyard-1", "/tmp/torchinductor_ada")
    kept = OWN | {"TMPDIR": "/tmp", "TORCHINDUCTOR_CACHE_DIR": "/cache"}
    assert places(own=kept) == ("/tmp/torchyard-1", "/cache")
    assert places({"env": {"TORCHINDUCTOR_CACHE_DIR": "/mine"}}, own=kept) == ("/tmp/torchyard-1", "/mine")
    assert places({"env": {"TMPDIR": "/scratch"}}, identity=ada) == ("/scratch", None)


def test_restore_and_checkpoints() -> None:
    env = build({"checkpoint": {"every": "10m", "keep_best": {"metric": "val/loss", "mode": "min"}}}, restores=True)
    assert env["TORCHYARD_RESTORE_DIR"] == "/home/attempts/att-1/restore"
    assert env["TORCHYARD_CHECKPOINT_EVERY"] == "600"
    assert env["TORCHYARD_KEEP_BEST"] == "min val/loss"


def test_a_job_that_can_open_its_own_gpus_alone_counts_them_from_0() -> None:
    """In the order in which CUDA finds them, which is that of all GPUs."""
    devices = [gpu(5, "GPU-a"), gpu(2, "GPU-b"), gpu(7, "GPU-c")]
    assert build(devices=devices, confined=True)["CUDA_VISIBLE_DEVICES"] == "1,0,2"
    assert build(devices=[], confined=True)["CUDA_VISIBLE_DEVICES"] == ""


def test_no_gpu_hides_all_gpus() -> None:
    slot = Device(uuid="cpu-0", index=0, kind=DeviceKind.CPU_SLOT, name="CPU", memory=1)
    assert build(devices=[])["CUDA_VISIBLE_DEVICES"] == ""
    assert build(devices=[slot])["CUDA_VISIBLE_DEVICES"] == ""


def test_a_mig_instance_goes_by_uuid() -> None:
    assert build(devices=[gpu(1003, "MIG-1")])["CUDA_VISIBLE_DEVICES"] == "MIG-1"


def test_a_recipe_needs_no_search_path() -> None:
    assert "PYTHONPATH" not in build({"command": None, "recipe": {}})


def test_conda_and_plain_interpreters() -> None:
    conda = Interpreter(path=Path("/conda/bin/python"), prefix=Path("/conda"), prefix_name="CONDA_PREFIX")
    env = build(interpreter=conda)
    assert env["CONDA_PREFIX"] == "/conda"
    assert "VIRTUAL_ENV" not in env
    assert not {"CONDA_PREFIX", "VIRTUAL_ENV"} & build(interpreter=Interpreter(path=Path("/usr/bin/python3"))).keys()


def test_another_user_has_a_home_of_their_own() -> None:
    env = build(identity=UnixUser(name="ada", uid=1, gid=1, groups=(1,), home="/home/ada"))
    assert (env["HOME"], env["USER"], env["LOGNAME"]) == ("/home/ada", "ada", "ada")


def test_the_in_job_folder_holds_nothing_else(tmp_path: Path) -> None:
    folder = environment.install_injob(tmp_path)
    assert environment.install_injob(tmp_path) == folder
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    names = ["__pycache__", "torchyard", "torchyard_entry_points.py", "torchyard_injob-1.dist-info"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert sorted(path.name for path in (folder / "torchyard").iterdir()) == ["__init__.py", "__pycache__", "injob"]
    assert (folder / "torchyard" / "injob" / "layout.py").exists()


def test_the_in_job_library_is_compiled_once_for_all_jobs(tmp_path: Path) -> None:
    folder = environment.install_injob(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.pyc")}
    assert len(before) == len(list(folder.rglob("*.py")))
    code = "import torchyard.injob.metrics as found; print(found.report.__code__.co_filename)"
    env = {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(folder / "torchyard/injob/metrics.py")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.pyc")} == before


_FIND = """
import sys
from importlib.metadata import entry_points
for group in sys.argv[1:]:
    (found,) = entry_points(group=group)
    made = found.load()()
    print(group, made.in_context() if hasattr(made, "in_context") else made)
"""


def found_in_a_job(tmp_path: Path, **env: str) -> list[str]:
    """What frameworks find in the in-job folder, and get when they call it."""
    path = ":".join([*filter(None, [env.pop("PYTHONPATH", "")]), str(environment.install_injob(tmp_path))])
    command = [sys.executable, "-S", "-c", _FIND, *entry_points.GROUPS]
    done = subprocess.run(command, env={**env, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


NOTHING = [
    "lightning.pytorch.callbacks_factory []",
    "pytorch_lightning.callbacks_factory []",
    "torch.backends None",
    "mlflow.run_context_provider False",
]


def test_frameworks_find_entry_points_that_do_nothing_off_the_queue(tmp_path: Path) -> None:
    assert found_in_a_job(tmp_path) == NOTHING


def test_entry_points_keep_no_framework_from_starting(tmp_path: Path) -> None:
    (tmp_path / "own" / "torchyard").mkdir(parents=True)
    (tmp_path / "own" / "torchyard" / "__init__.py").write_text("raise ValueError")
    assert found_in_a_job(tmp_path, PYTHONPATH=str(tmp_path / "own")) == NOTHING


def trackers(spec: dict[str, Any] | None = None, **changed: Any) -> dict[str, str]:
    """What the environment says to the job's trackers."""
    built = build(spec, **changed)
    return {name: value for name, value in built.items() if name.startswith(("MLFLOW_", "WANDB_", "TRACKIO_"))}


def test_what_the_user_has_told_a_tracker_stays() -> None:
    given = {"MLFLOW_TRACKING_URI": "http://mlflow", "TRACKIO_DIR": "/mine", "WANDB_MODE": "offline"}
    flush = {"WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL": "1"}
    assert trackers({"env": given}) == given | flush
    assert trackers(own=OWN | given) == given | flush


def test_trackers_that_are_not_read_are_told_nothing() -> None:
    assert trackers({"trackers": False}) == {}
    assert layout.READ_TRACKERS not in build({"trackers": False})
    assert build({"trackers": ["wandb", "mlflow"]})[layout.READ_TRACKERS] == "wandb,mlflow"
    assert trackers({"trackers": ["tensorboard"]}) == {}
    assert trackers({"trackers": ["wandb"]}) == {"WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL": "1"}


def test_a_later_attempt_goes_on_with_the_only_run(tmp_path: Path) -> None:
    folder, run = AttemptFolder(tmp_path, "att-2"), "0123456789abcdef" * 2
    made = trackers({"trackers": ["wandb", "mlflow"]}, folder=folder, tracker_runs={"wandb": "abc", "mlflow": run})
    assert (made["WANDB_RUN_ID"], made["WANDB_RESUME"]) == ("abc", "allow")
    assert "MLFLOW_RUN_ID" not in made, "its store lacks the run"
    meta = folder.at(layout.MLFLOW_STORE) / "0" / run / "meta.yaml"
    meta.parent.mkdir(parents=True)
    meta.touch()
    assert trackers(folder=folder, tracker_runs={"mlflow": run})["MLFLOW_RUN_ID"] == run
    elsewhere = {"env": {"MLFLOW_TRACKING_URI": "http://mlflow", "WANDB_RUN_ID": "mine"}}
    made = trackers(elsewhere, folder=folder, tracker_runs={"wandb": "abc", "mlflow": run})
    assert "MLFLOW_RUN_ID" not in made
    assert (made["WANDB_RUN_ID"], "WANDB_RESUME" in made) == ("mine", False)
