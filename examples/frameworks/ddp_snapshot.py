"""A DistributedDataParallel training that knows nothing of TorchYard: it keeps `snapshot.pt` and goes on from it.

yard run --gpus 2 -- python examples/frameworks/ddp_snapshot.py
torchrun --standalone --nproc-per-node=2 examples/frameworks/ddp_snapshot.py
"""

import argparse
import os
from pathlib import Path
from zlib import crc32

import torch
import torch._dynamo  # DDP loads it anyway; loaded after the process group it keeps gloo's threads past their end
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

SNAPSHOT = Path("snapshot.pt")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=32, help="per rank")
    parser.add_argument("--lr", type=float, default=0.01)
    return parser.parse_args()


def make_data(samples):
    """Noisy points around ten centres; the same on every rank."""
    chance = torch.Generator().manual_seed(0)
    centres = torch.randn(10, 64, generator=chance)
    labels = torch.randint(10, (samples,), generator=chance)
    return TensorDataset(centres[labels] + torch.randn(samples, 64, generator=chance), labels)


def load(model, optimizer):
    """The epoch to begin with."""
    if not SNAPSHOT.exists():
        return 0
    snapshot = torch.load(SNAPSHOT, map_location="cpu")
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    print(f"goes on after epoch {snapshot['epoch']}", flush=True)
    return snapshot["epoch"]


def save(model, optimizer, epoch):
    snapshot = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    written = SNAPSHOT.with_suffix(".new")
    torch.save(snapshot, written)
    written.replace(SNAPSHOT)


def train(options):
    """Trains as one of the ranks of the default process group."""
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", dist.get_rank()))) if cuda else torch.device("cpu")
    data = make_data(options.samples)
    sampler = DistributedSampler(data, seed=0)
    loader = DataLoader(data, batch_size=options.batch_size, sampler=sampler)
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    optimizer = torch.optim.SGD(plain.parameters(), lr=options.lr, momentum=0.9)
    first = load(plain, optimizer)
    model = DistributedDataParallel(plain, device_ids=[device] if cuda else None)
    for epoch in range(first, options.epochs):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            save(plain, optimizer, epoch + 1)
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)
    if dist.get_rank() == 0:
        weights = torch.cat([each.detach().cpu().flatten() for each in plain.parameters()])
        print(f"checksum of the weights {crc32(weights.numpy().tobytes()):08x}", flush=True)


def main():
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    train(arguments())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
