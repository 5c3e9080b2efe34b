from pathlib import Path
from typing import Any

import pytest

from torchyard.ids import AttemptId
from torchyard.spec import JobSpec
from torchyard.wire import Device, DeviceKind, Launch
from worker.exceptions import DeviceGoneError
from worker.launching.launcher import AttemptLauncher, threads, with_present


def gpu(uuid: str, index: int) -> Device:
    return Device(uuid=uuid, index=index, kind=DeviceKind.GPU, name="H200", memory=4)


def launch(*devices: Device, **resources: Any) -> Launch:
    return Launch(
        attempt="att-1",
        job="job-1",
        number=1,
        spec=JobSpec.model_validate({"command": ["train.py"], "resources": {"gpus": len(devices)} | resources}),
        user="ada",
        unix_user=None,
        node_rank=0,
        devices=list(devices),
        code=None,
        restore=None,
    )


def test_a_gpu_goes_by_its_uuid_wherever_it_is_now() -> None:
    moved = with_present(launch(gpu("GPU-a", 0)), [gpu("GPU-b", 0), gpu("GPU-a", 1)])
    assert moved.devices == [gpu("GPU-a", 1)]
    with pytest.raises(DeviceGoneError, match="GPU-a"):
        with_present(launch(gpu("GPU-a", 0)), [gpu("GPU-b", 0)])


#: A quarter of a GPU.
SHARE = gpu("", 0).memory // 4


@pytest.mark.parametrize(
    ("devices", "resources", "threads"),
    [(2, {}, 8), (1, {}, 8), (0, {}, 8), (2, {"cpus": 6}, 3), (8, {"cpus": 4}, 1), (4, {"gpu_share": SHARE}, 2)],
)
def test_threads_of_a_rank(tmp_path: Path, devices: int, resources: dict[str, int], threads: int) -> None:
    node = AttemptLauncher(attempts=tmp_path, control=None, injob=tmp_path, cpus=64)  # type: ignore[arg-type]
    wanted = launch(*(gpu(f"GPU-{index}", index) for index in range(devices)), **resources)
    assert node._threads(wanted, 8) == threads


def test_no_other_folder_is_made_where_that_of_the_attempts_is_away(tmp_path: Path) -> None:
    away = tmp_path / "disk" / "attempts"
    node = AttemptLauncher(attempts=away, control=None, injob=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="the folder of attempts is away"):
        node.start(AttemptId("att-1"))
    assert not away.parent.exists()


@pytest.mark.parametrize(
    ("spec", "each"),
    [
        ({"command": ["t.py"], "launcher": "torchrun", "resources": {"gpus": 2}}, 8),
        ({"command": ["t.py"], "launcher": "python", "resources": {"gpus": 2}}, 8),  # it starts its ranks itself
        ({"command": ["t"], "launcher": "none", "resources": {"gpus": 4, "cpus": 8}}, 2),
        ({"command": ["t.py"], "launcher": "python", "resources": {"gpus": 0}}, 16),
        ({"recipe": {"model": "mlp", "data": "digits", "strategy": "dp"}, "resources": {"gpus": 2}}, 16),
        ({"command": ["t.py"], "launcher": "torchrun", "resources": {"gpus": 32}}, 1),
    ],
)
def test_processes_of_a_job_share_its_cores(spec: dict[str, Any], each: int) -> None:
    assert threads(JobSpec.model_validate(spec), 16) == each
