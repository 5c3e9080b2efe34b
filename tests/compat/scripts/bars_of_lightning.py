"""Trainers of Lightning with its two bars, one after the other: epochs of 16 steps, each with a validation."""

import argparse

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import RichProgressBar, TQDMProgressBar
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def training_step(self, batch, _):
        return self.layer(batch[0]).square().mean()

    def validation_step(self, batch, _):
        self.log("val", self.layer(batch[0]).mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int)
    options = parser.parse_args()
    loader = DataLoader(TensorDataset(torch.ones(64, 4)), batch_size=4)
    for bar in (TQDMProgressBar(), RichProgressBar()):
        trainer = Trainer(
            max_epochs=options.epochs, accelerator="cpu", logger=False, enable_checkpointing=False, callbacks=[bar]
        )
        trainer.fit(Model(), loader, loader)
        print("trained", flush=True)
