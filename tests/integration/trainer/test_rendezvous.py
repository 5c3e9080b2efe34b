"""Ranks that meet in every way, and what they say when one is lost."""

import json
import os
import resource
import signal
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch.distributed import HashStore  # type: ignore[attr-defined]

from tests.support import ranks, spawned, training
from tests.support.attempt import forget
from tests.support.wait import until
from torchyard.recipe import Recipe
from trainer.command import main
from trainer.distributed import lost_ranks, spawn
from trainer.distributed.collectives import all_reduce_sum
from trainer.distributed.process_group import joined
from trainer.distributed.rendezvous import Rendezvous
from trainer.exceptions import SpawnError
from trainer.run import run


def meet(*urls: str) -> list[float]:
    """One sum for each rendezvous, one after the other in the same process."""
    totals = []
    for url in urls:
        if url.startswith("file://"):  # then nothing else leads to the others
            del os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]
        with joined(rendezvous=Rendezvous(url=url)) as world:
            totals.append(float(all_reduce_sum(torch.tensor(world.rank + 1.0))))
    return totals


def meet_at_the_launchers_address() -> list[float]:
    return meet(f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")


def test_all_ways_lead_to_the_same_group(tmp_path: Path) -> None:
    assert ranks.run(meet, 2, "env://", f"file://{tmp_path}/fresh") == [[3.0, 3.0]] * 2
    assert ranks.run(meet_at_the_launchers_address, 2) == [[3.0]] * 2


def lose_rank_1(how: int, folder: str) -> None:
    ranks.meet(folder)
    with joined(rendezvous=Rendezvous(timeout=timedelta(seconds=5))) as world:
        all_reduce_sum(torch.ones(1))
        if world.rank == 1:
            os.kill(os.getpid(), how)
        all_reduce_sum(torch.ones(1))


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_lost_rank_is_named_within_the_time_out(how: int, tmp_path: Path) -> None:
    with ranks.started(lose_rank_1, 2, how, str(tmp_path)) as started:
        first = started.processes[0]
        first.join(lost_ranks.ROLL_CALL_S + 60)
        assert first.exitcode == 1
        assert "PeerError: rank 1 no longer answers: it failed, was killed or hangs" in started.output(0)


def test_a_spawned_rank_that_fails_ends_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "GRACE_S", 0.5)
    with pytest.raises(SpawnError, match=r"(?s)rank 1 failed:\nTraceback.*ValueError: boom$") as failed:
        spawn.run(2, spawned.fail, str(tmp_path))
    assert failed.value.code == 1
    assert not psutil.pid_exists(int((tmp_path / "pid-0").read_text()))


def test_spawned_ranks_end_when_their_command_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "GRACE_S", 0.5)

    def interrupt() -> None:
        until(lambda: len([*tmp_path.iterdir()]) == 2, what="two ranks")
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    watch = threading.Thread(target=interrupt)
    watch.start()
    with pytest.raises(KeyboardInterrupt):
        spawn.run(2, spawned.stay, str(tmp_path))
    watch.join()
    assert not [file.name for file in tmp_path.iterdir() if psutil.pid_exists(int(file.name))]


def test_a_recipe_on_two_ranks_without_torchrun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tmp_path / "recipe.yaml"
    data = {"name": "synthetic", "samples": 30, "validation_samples": 10, "shape": [5]}
    recipe.write_text(json.dumps({"model": "mlp", "data": data, "epochs": 1, "rendezvous": "file", "num_workers": 1}))
    forget(monkeypatch)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(tmp_path)
    main([str(recipe), "--nproc", "2"])
    (checkpoint,) = (tmp_path / "checkpoints").iterdir()
    assert checkpoint.name == "step-000000001"
    assert torch.load(checkpoint / "training.pt", weights_only=True)["ranks"] == 2
    assert {"rank-0.pt", "rank-1.pt"} <= {file.name for file in checkpoint.iterdir()}


def train_on_a_disk_of_its_own(root: str, given: dict[str, Any], url: str | None) -> None:
    folder = Path(root, f"disk-{os.environ['RANK']}")
    folder.mkdir()
    os.chdir(folder)
    run(Recipe.model_validate(given), url)


@pytest.mark.parametrize("by", ["tcp", "file"])
def test_ranks_on_disks_of_their_own_leave_one_whole_checkpoint(by: str, tmp_path: Path) -> None:
    given = training.recipe("ddp", epochs=1, model={"name": "mlp", "hidden": [8], "dropout": 0.5}, rendezvous=by)
    url = f"file://{tmp_path}/fresh" if by == "file" else None
    ranks.run(train_on_a_disk_of_its_own, 2, str(tmp_path), given, url)
    (checkpoint,) = (tmp_path / "disk-0" / "checkpoints").iterdir()
    assert not (tmp_path / "disk-1" / "checkpoints").exists()
    # It is the one that ranks with a common disk write, so that it can be resumed from to the last bit.
    common = training.train({**given, "rendezvous": "env"}, 2, tmp_path / "common")
    (expected,) = common.attempt.checkpoints()
    assert {file.name for file in checkpoint.iterdir()} == {file.name for file in expected.iterdir()}
    for name in ("model.pt", "rank-0.pt", "rank-1.pt"):
        here, there = (torch.load(folder / name, weights_only=True) for folder in (checkpoint, expected))
        if name == "model.pt":
            assert training.equal(here, there)
        else:
            assert here["loader"] == there["loader"]
            assert torch.equal(here["random"]["torch"], there["random"]["torch"])


def test_a_sharded_model_on_disks_of_their_own_fails_and_says_why(tmp_path: Path) -> None:
    given = training.recipe("fsdp", epochs=1)
    with ranks.started(train_on_a_disk_of_its_own, 2, str(tmp_path), given, None) as started:
        started.wait()
        assert [process.exitcode for process in started.processes] == [1, 1]
        why = "CheckpointError: no checkpoint of step 5: Ranks write a sharded checkpoint into one folder"
        assert why in started.output(1)


def train_without_room(folder: str, given: dict[str, Any]) -> None:
    """Rank 0 has the file system full when it writes what is left after training."""
    os.chdir(folder)
    if os.environ["RANK"] == "0":
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    run(Recipe.model_validate(given))


def test_a_run_whose_last_checkpoint_is_lost_fails(tmp_path: Path) -> None:
    given = training.recipe("ddp", epochs=1, model={"name": "mlp", "hidden": [256]})
    with ranks.started(train_without_room, 2, str(tmp_path), given) as started:
        started.wait()
        assert [process.exitcode for process in started.processes] == [1, 1]
        assert "CheckpointError: no checkpoint of step 5: it cannot be written" in started.output(0)
        assert "CheckpointError: no checkpoint of step 5: another rank failed" in started.output(1)


def test_only_lost_ranks_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_ranks, "ROLL_CALL_S", 0.1)
    store = HashStore()
    closed = RuntimeError("[/gloo/pair.cc:538] Connection closed by peer [10.0.0.1]:4. This is typically caused by\n")
    assert lost_ranks.explain(RuntimeError("shapes differ"), store, 0, 3) is None
    assert lost_ranks.explain(closed, store, 0, 1) is None
    lost = lost_ranks.explain(closed, store, 0, 3)
    assert str(lost) == (
        "each of the ranks 1, 2 no longer answers: it failed, was killed or hangs; see its log "
        "(Connection closed by peer [10.0.0.1]:4)"
    )
    assert lost_ranks.explain(closed, store, 1, 2) is None  # rank 0 has failed too, and answers
