import torch

from trainer.strategies.by_hand import bucketed, pack, unpack


def test_buckets_hold_one_type_up_to_the_limit() -> None:
    tensors = [torch.zeros(3), torch.zeros(1, dtype=torch.int64), torch.zeros(2), torch.zeros(9), torch.zeros(1)]
    buckets = bucketed(tensors, limit=20)
    assert [[each.numel() for each in bucket] for bucket in buckets] == [[3, 2], [1], [9], [1]]
    assert bucketed([]) == []


def test_packing_keeps_shapes_and_layouts() -> None:
    tensors = [torch.randn(2, 3), torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last), torch.randn(())]
    copies = [torch.zeros_like(each) for each in tensors]
    unpack(pack(tensors), copies)
    assert all(map(torch.equal, tensors, copies))
    assert copies[1].is_contiguous(memory_format=torch.channels_last)
