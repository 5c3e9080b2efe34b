"""The training of plain_ddp.py with metrics, checkpoints, resume and a clean stop.

    yard run --gpus 2 -- python examples/train_ddp.py --epochs 5

TorchYard puts `torchyard` on the job's path: the job's environment needs nothing but torch 2 and Python 3.9. Off the
queue the script runs wherever `torchyard` can be imported; it then reports nothing and keeps its checkpoints in
./checkpoints:

    PYTHONPATH=. torchrun --standalone --nproc-per-node=2 examples/train_ddp.py
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


def save(step, loss, model, optimizer):
    with torchyard.checkpoint(step=step, metrics={"loss": loss}) as folder:  # every rank enters
        if dist.get_rank() == 0:
            state = {"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, folder / "state.pt")


def resume(model, optimizer, device):
    """Loads the checkpoint to continue from, if there is one; answers its step."""
    last = torchyard.restore()
    if last is None:
        return 0
    state = torch.load(last / "state.pt", map_location=device, weights_only=True)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def train(options, device):
    rank = dist.get_rank()
    data = make_data(options.samples)
    sampler = DistributedSampler(data, seed=0)
    loader = DataLoader(data, batch_size=options.batch_size, sampler=sampler)
    model = make_model(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)

    step, done = 0, resume(model, optimizer, device)
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            step += 1
            if step <= done:  # trained on before the checkpoint
                continue
            loss = train_step(model, optimizer, inputs.to(device), labels.to(device))
            if rank == 0:
                torchyard.report(step=step, total_steps=options.epochs * len(loader), loss=loss)
            if torchyard.should_checkpoint():  # every rank asks; after a stop, save() does not return
                save(step, loss, model, optimizer)
        if rank == 0:
            print(f"epoch {epoch + 1}/{options.epochs} done at step {step}", flush=True)
    if step > done:
        save(step, loss, model, optimizer)


def main():
    options = arguments()
    train(options, join())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
