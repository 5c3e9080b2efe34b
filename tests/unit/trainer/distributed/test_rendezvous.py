import os
from pathlib import Path

import pytest

from torchyard.recipe import Recipe
from trainer.distributed import rendezvous
from trainer.distributed.rendezvous import Rendezvous, rendezvous_for
from trainer.exceptions import RecipeError

TWO = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}


def url(choice: str, environment: dict[str, str], by_hand: str | None = None) -> str:
    return rendezvous_for(Recipe.model_validate({"rendezvous": choice}), environment, by_hand).url


def test_where_ranks_meet() -> None:
    assert url("env", TWO) == "env://"
    assert url("tcp", TWO) == "tcp://10.0.0.1:29500"
    assert url("tcp", {**TWO, "MASTER_ADDR": "fd00::2"}) == "tcp://[fd00::2]:29500"
    assert url("file", {**TWO, "TORCHYARD_ATTEMPT_DIR": "/a/att-1"}) == "file:///a/att-1/job/rendezvous"
    assert url("file", {}) == "env://"  # alone
    assert url("env", TWO, "tcp://[::1]:5000") == "tcp://[::1]:5000"


def test_a_file_must_be_one_that_all_ranks_see() -> None:
    with pytest.raises(RecipeError, match="take rendezvous: env or tcp"):
        url("file", {**TWO, "WORLD_SIZE": "4", "TORCHYARD_ATTEMPT_DIR": "/a"})
    with pytest.raises(RecipeError, match="--rendezvous file:///path"):
        url("file", TWO)


@pytest.mark.parametrize("wrong", ["tcp://host", "tcp://:29500", "file://host/path", "etcd://host:1", "x"])
def test_a_rendezvous_that_is_none(wrong: str) -> None:
    with pytest.raises(RecipeError, match="give env://, tcp://host:port or file:///fresh/path"):
        url("env", {}, wrong)


def test_ranks_that_nobody_tells_where_to_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    assert rendezvous.open_store(Rendezvous(), 0, 1) is None
    with pytest.raises(RecipeError, match="start with torchrun"):
        rendezvous.open_store(Rendezvous(), 0, 2)


def test_the_file_of_an_earlier_run_is_refused(tmp_path: Path) -> None:
    left = tmp_path / "left"
    left.touch()
    os.utime(left, (0, 0))
    with pytest.raises(RecipeError, match="left of an earlier run"):
        rendezvous.open_store(Rendezvous(url=f"file://{left}"), 0, 2)


def test_backends() -> None:
    assert rendezvous.backend("auto", gpus=False) == rendezvous.backend("gloo", gpus=True) == "gloo"
    assert rendezvous.backend("auto", gpus=True) == rendezvous.backend("nccl", gpus=True) == "cpu:gloo,cuda:nccl"
    with pytest.raises(RecipeError, match="sees no GPU: take backend: auto or gloo"):
        rendezvous.backend("nccl", gpus=False)
    with pytest.raises(RecipeError, match="built without MPI"):  # as every wheel of torch is
        rendezvous.backend("mpi", gpus=False)
