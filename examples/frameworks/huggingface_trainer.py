"""A Trainer of transformers that knows nothing of TorchYard: version 5, any number of processes.

yard run --gpus 2 -- python examples/frameworks/huggingface_trainer.py
torchrun --standalone --nproc-per-node=2 examples/frameworks/huggingface_trainer.py
"""

import argparse
from zlib import crc32

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Points(Dataset):
    """Noisy points around ten centres; the same in every process."""

    def __init__(self, samples):
        chance = torch.Generator().manual_seed(0)
        centres = torch.randn(10, 64, generator=chance)
        self.labels = torch.randint(10, (samples,), generator=chance)
        self.inputs = centres[self.labels] + torch.randn(samples, 64, generator=chance)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"inputs": self.inputs[index], "labels": self.labels[index]}


class Classifier(nn.Module):
    """A small network with dropout, so that its random streams matter."""

    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))

    def forward(self, inputs, labels):
        logits = self.network(inputs)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--lr", type=float, default=0.001)
    return parser.parse_args()


def main():
    options = arguments()
    torch.manual_seed(0)
    settings = TrainingArguments(
        output_dir="out",
        num_train_epochs=options.epochs,
        per_device_train_batch_size=32,
        learning_rate=options.lr,
        logging_steps=1,
        save_total_limit=1,
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = Trainer(Classifier(), settings, train_dataset=Points(options.samples))
    trainer.train()
    if trainer.is_world_process_zero():
        weights = torch.cat([each.detach().cpu().flatten() for each in trainer.model.parameters()])
        step = trainer.state.global_step
        print(f"step {step}, checksum of the weights {crc32(weights.numpy().tobytes()):08x}", flush=True)


if __name__ == "__main__":
    main()
