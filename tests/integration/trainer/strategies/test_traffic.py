"""What strategies really send in a step, as the process group is called; not what they say of it."""

from typing import Any

import pytest

from tests.support import training

#: Elements of a multilayer perceptron 10 - 8 - 10.
MODEL: dict[str, Any] = {"name": "mlp", "hidden": [8]}
DATA: dict[str, Any] = {"name": "synthetic", "shape": [10], "samples": 30, "validation_samples": 4}
P = 10 * 8 + 8 + 8 * 10 + 10
SIZE = 4


def step(strategy: Any, world: int, **changed: Any) -> list[dict[str, int]]:
    return training.exchanged(training.recipe(strategy, model=MODEL, data=DATA, **changed), world)


def test_broadcast_reduces_to_rank_0_and_sends_the_mean_from_there() -> None:
    ranks = step("broadcast", 3)
    assert [{name: each[name] for name in each if name != "counted"} for each in ranks] == [
        {"reduce": P, "broadcast": P}
    ] * 3
    # Rank 0 gives the mean to each of the others, which give their gradients once.
    assert [each["counted"] for each in ranks] == [2 * P * SIZE, P * SIZE, P * SIZE]


def test_ring_passes_two_times_all_but_one_chunk_on() -> None:
    world = 3
    ranks = step("ring", world)
    for each in ranks:
        assert each.keys() == {"send", "recv", "counted"}
        assert each["send"] * SIZE == each["counted"]
        assert each["send"] == pytest.approx(2 * (world - 1) / world * P, abs=world)
    assert sum(each["send"] for each in ranks) == 2 * (world - 1) * P


def test_ddp_reduces_each_gradient_once_and_the_passes_of_a_step_together() -> None:
    for each in step("ddp", 2, accumulate=3):
        # The first step also tells all ranks how buckets are laid out: an index for each parameter and its like.
        assert each.pop("broadcast") < 10
        assert each == {"all_reduce": P, "counted": P * SIZE}  # 2 (n - 1) / n = 1


def test_workers_and_servers_exchange_parameters_and_gradients() -> None:
    """Each of n workers sends P, all m servers together n P; in messages of bytes."""
    workers, servers = 2, 2
    ranks = step({"name": "parameter_server", "servers": servers}, workers + servers)
    assert [each["send"] for each in ranks[:workers]] == [P * SIZE] * workers
    assert sum(each["send"] for each in ranks[workers:]) == workers * P * SIZE
    # No server has more than its part and what the largest parameter, which is not cut, adds to it.
    assert max(each["send"] for each in ranks[workers:]) <= workers * (P / servers + 8 * 10 / 2) * SIZE
    assert all("all_reduce" not in each for each in ranks)
    assert [each["send"] for each in ranks] == [each["counted"] for each in ranks]


def test_a_pipeline_sends_activations_forward_and_their_gradients_back() -> None:
    samples, width = 10, 8
    first, last = step({"name": "pipeline", "microbatches": 2}, 2, batch_size=samples)
    # Before its first step torch has each stage greet its neighbour with a number.
    assert [each["send"] for each in (first, last)] == [samples * width + 1] * 2
    assert [each["counted"] for each in (first, last)] == [samples * width * SIZE] * 2
    assert "all_reduce" not in first
