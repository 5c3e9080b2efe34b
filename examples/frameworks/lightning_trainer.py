"""A Lightning Trainer that knows nothing of TorchYard: Lightning 2, any number of processes.

yard run --gpus 2 -- python examples/frameworks/lightning_trainer.py --devices 2
python examples/frameworks/lightning_trainer.py --devices 2
"""

import argparse
from zlib import crc32

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(L.LightningModule):
    """A small network with dropout, so that its random streams matter."""

    def __init__(self, lr):
        super().__init__()
        self.save_hyperparameters()
        self.network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))

    def training_step(self, batch, batch_idx):
        inputs, labels = batch
        loss = nn.functional.cross_entropy(self.network(inputs), labels)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        inputs, labels = batch
        self.log("val_accuracy", (self.network(inputs).argmax(1) == labels).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)]


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
    parser.add_argument("--devices", default="auto", help="processes; auto: all GPUs, on a CPU one")
    parser.add_argument("--strategy", default="auto", help="ddp, ddp_spawn, fsdp, ...")
    return parser.parse_args()


def main():
    options = arguments()
    L.seed_everything(0)
    devices = options.devices if options.devices == "auto" else int(options.devices)
    trainer = L.Trainer(
        max_epochs=options.epochs,
        accelerator="auto",
        devices=devices,
        strategy=options.strategy,
        log_every_n_steps=1,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = make_data(options.samples)
    model = Classifier(options.lr)
    trainer.fit(
        model,
        DataLoader(data, batch_size=options.batch_size, shuffle=True),
        DataLoader(data, batch_size=256),
    )
    if trainer.is_global_zero:
        torch.save(model.state_dict(), "model.pt")
        weights = torch.cat([each.detach().cpu().flatten() for each in model.parameters()])
        print(f"step {trainer.global_step}, checksum of the weights {crc32(weights.numpy().tobytes()):08x}", flush=True)


if __name__ == "__main__":
    main()
