"""A loop with Accelerate that knows nothing of TorchYard: it saves its state after each epoch.

yard run --gpus 2 -- python examples/frameworks/accelerate_loop.py
accelerate launch --num_processes 2 examples/frameworks/accelerate_loop.py --resume_from_checkpoint states/epoch_1
"""

import argparse
from zlib import crc32

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(samples):
    """Noisy points around ten centres; the same in every process."""
    chance = torch.Generator().manual_seed(0)
    centres = torch.randn(10, 64, generator=chance)
    labels = torch.randint(10, (samples,), generator=chance)
    return TensorDataset(centres[labels] + torch.randn(samples, 64, generator=chance), labels)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=32, help="per process")
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--resume_from_checkpoint", help="a folder that was saved after an epoch")
    return parser.parse_args()


def main():
    options = arguments()
    # Its order is then that of the epoch, whichever process begins it.
    loading = DataLoaderConfiguration(use_seedable_sampler=True)
    accelerator = Accelerator(cpu=not torch.cuda.is_available(), dataloader_config=loading)
    set_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    loader = DataLoader(make_data(options.samples), batch_size=options.batch_size, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    first = 0
    if options.resume_from_checkpoint:
        accelerator.load_state(options.resume_from_checkpoint)
        first = int(options.resume_from_checkpoint.rpartition("_")[2]) + 1
    for epoch in range(first, options.epochs):
        loader.set_epoch(epoch)
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            accelerator.log({"train_loss": loss.item()})
        accelerator.save_state(f"states/epoch_{epoch}")
    if accelerator.is_main_process:
        weights = torch.cat([each.detach().cpu().flatten() for each in model.parameters()])
        print(f"epoch {options.epochs}, checksum of the weights {crc32(weights.numpy().tobytes()):08x}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
