"""`attach` on several ranks."""

import os
from pathlib import Path

import pytest
import torch

from tests.support import attached, disks, ranks
from tests.support.attempt import AttemptFolder


@pytest.mark.parametrize(("wrapper", "each_batch"), [("ddp", True), ("fsdp", False), ("fsdp", True)])
def test_two_ranks_stopped_at_any_step_go_on_exactly(wrapper: str, each_batch: bool, tmp_path: Path) -> None:
    """Also between the steps of the optimizer, whose gradients are each rank's own."""
    assert ranks.run(attached.stopped_at_every_step, 2, wrapper, tmp_path, each_batch, cwd=tmp_path) == [[], []]
    (checkpoint, *_) = sorted((tmp_path / "checkpoints").iterdir())
    written = {os.path.relpath(file, checkpoint) for file in checkpoint.rglob("*") if file.is_file()}
    shards = {"shards/.metadata", "shards/__0_0.distcp", "shards/__1_0.distcp"}
    common = {"manifest.json", "training.pt", "rank-0.pt", "rank-1.pt"}
    assert written == common | (shards if wrapper == "fsdp" else {"model.pt"})


def test_the_model_alone_is_portable(tmp_path: Path) -> None:
    """A plain state dict on the CPU, with the names that the model has alone."""
    (checkpoint, weights, _), _ = ranks.run(attached.stopped, 2, "ddp", tmp_path, 2, cwd=tmp_path)
    saved = torch.load(checkpoint / "model.pt", weights_only=True)
    model = attached.bare()
    model.load_state_dict(saved)
    assert attached.same({f"module.{name}": value for name, value in saved.items()}, weights)
    alone = attached.Training(loader=torch.utils.data.DataLoader(attached.Seen(), batch_size=4), restore=checkpoint)
    assert attached.same(alone.weights(), saved)
    assert alone.run.inexact is not None
    assert "there were 2 ranks" in alone.run.inexact


@pytest.mark.parametrize(("wrapper", "first", "second"), [("ddp", 2, 3), ("fsdp", 2, 1), ("fsdp", 1, 3)])
def test_another_number_of_ranks_goes_on_without_loss_or_double(
    wrapper: str, first: int, second: int, tmp_path: Path
) -> None:
    before = ranks.run(attached.stopped, first, wrapper, tmp_path, 2, cwd=tmp_path)
    checkpoint, weights, _ = before[0]
    after = ranks.run(attached.went_on, second, wrapper, checkpoint, cwd=tmp_path)
    assert all(attached.same(loaded, weights) for loaded, _, _ in after)
    taken = [index for _, _, loaded in before for index in loaded]
    taken += [index for _, loaded, _ in after for index in loaded]
    assert set(taken) == set(range(attached.SAMPLES))
    # The last samples are padded, so that all ranks get as many.
    assert len(taken) - attached.SAMPLES < second
    assert all("random streams are new ones" in (inexact or "") for _, _, inexact in after)


@pytest.mark.parametrize("wrapper", ["ddp", "fsdp"])
def test_what_one_rank_cannot_write_none_commits(wrapper: str, tmp_path: Path) -> None:
    with disks.small(tmp_path / "disk", 4) as disk:
        folder = AttemptFolder(disk / "attempt")
        arguments = (attached.one_cannot_write, 2, wrapper, folder.root)
        with ranks.started(*arguments, environment=folder.environment()) as running:
            results = running.results()
            output = running.output(1)
    first, third = "step-000000001", "step-000000003"
    assert results == [[[first], [first], [first, third]]] * 2
    assert "no checkpoint of step 2, the training goes on: it cannot be written" in output


def test_all_ranks_leave_when_asked(tmp_path: Path) -> None:
    folder = AttemptFolder(tmp_path / "attempt")
    assert ranks.run(attached.stopped_when_asked, 2, folder.root, environment=folder.environment()) == [None, None]
    step = folder.outcome()["stopped_at_step"]
    assert [path.name for path in folder.checkpoints()] == [f"step-{step:09d}"]
    assert folder.marks() == {"polled-0", "polled-1"}
    assert {record["step"] for record in folder.records()} == set(range(1, step + 1))


def test_other_stages_find_their_part(tmp_path: Path) -> None:
    """Of two ranks with a stage each, one rank with both and two ranks the other way round take what is theirs."""
    two = [[["0", "1"]], [["2", "3"]]]
    saved = ranks.run(attached.pipelined, 2, two, None, cwd=tmp_path)
    weights = {name: value for _, each, _ in saved for name, value in each.items()}
    state = {name: value for _, _, each in saved for name, value in each.items()}
    assert set(weights) == {"0.weight", "0.bias", "3.weight", "3.bias"}
    for other in ([[["0"], ["1", "2", "3"]]], [[["2", "3"]], [["0", "1"]]]):
        loaded = ranks.run(attached.pipelined, len(other), other, saved[0][0], cwd=tmp_path)
        assert attached.same({name: value for _, each, _ in loaded for name, value in each.items()}, weights)
        for _, _, each in loaded:
            assert all(torch.equal(moment, state[name][0]) for name, (moment, _) in each.items())
            # Its parameters are one group here: it has the options of its first.
            assert {rate for _, rate in each.values()} == {state[next(iter(each))][1]}


def test_ranks_started_by_hand_wait_for_gloo_at_their_exit() -> None:
    assert ranks.run(attached.waits_at_exit, 2) == [[False, True], [False, True]]
