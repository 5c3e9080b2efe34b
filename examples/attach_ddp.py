"""plain_ddp.py with four more lines: metrics, checkpoints, exact resume and a clean stop.

yard run --gpus 2 -- python examples/attach_ddp.py --epochs 5
PYTHONPATH=. torchrun --standalone --nproc-per-node=2 examples/attach_ddp.py
"""

import argparse
import os

import torch
import torch._dynamo  # DDP loads it anyway; loaded after the process group it keeps gloo's threads past their end
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import torchyard


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32, help="per rank")
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--lr", type=float, default=0.01)
    return parser.parse_args()


def join():
    """Joins the other ranks; answers this rank's device."""
    if not torch.cuda.is_available():
        dist.init_process_group("gloo")
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    return device


def make_data(samples):
    """Noisy points around ten centres; the same on every rank."""
    chance = torch.Generator().manual_seed(0)
    centres = torch.randn(10, 64, generator=chance)
    labels = torch.randint(10, (samples,), generator=chance)
    return TensorDataset(centres[labels] + torch.randn(samples, 64, generator=chance), labels)


def make_model(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    return DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)


def train_step(model, optimizer, inputs, labels):
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def train(options, device):
    rank = dist.get_rank()
    data = make_data(options.samples)
    sampler = DistributedSampler(data, seed=0)
    loader = DataLoader(data, batch_size=options.batch_size, sampler=sampler)
    model = make_model(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)

    run = torchyard.attach(model=model, optimizer=optimizer, loader=loader)
    for epoch in run.epochs(options.epochs):
        for inputs, labels in loader:
            loss = train_step(model, optimizer, inputs.to(device), labels.to(device))
            run.report(loss=loss, total_steps=options.epochs * len(loader))
        if rank == 0:
            print(f"epoch {epoch + 1}/{options.epochs}  loss {loss.item():.4f}", flush=True)


def main():
    options = arguments()
    train(options, join())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
