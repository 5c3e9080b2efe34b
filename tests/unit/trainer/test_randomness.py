import torch

from trainer import randomness


def test_ranks_and_purposes_have_their_own_seeds() -> None:
    seeds = {randomness.derive(1, "rank", 0), randomness.derive(1, "rank", 1), randomness.derive(1, "order", 0)}
    assert len(seeds) == 3
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_streams_are_those_of_other_gpus_than_the_first() -> None:
    first, second, cpu = torch.device("cuda", 0), torch.device("cuda", 1), torch.device("cpu")
    assert randomness.RandomStreams([first, second, first, second]).devices == [second]
    assert randomness.RandomStreams([cpu, cpu]).devices == []
