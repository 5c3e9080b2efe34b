"""A Trainer of transformers with its own bars: three epochs of eight steps, each with an evaluation."""

import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x, labels):
        found = self.layer(x)
        return {"loss": nn.functional.cross_entropy(found, labels), "logits": found}


if __name__ == "__main__":
    data = [{"x": torch.ones(4), "labels": row % 2} for row in range(64)]
    options = TrainingArguments(
        "out",
        num_train_epochs=3,
        per_device_train_batch_size=8,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=4,
        report_to="none",
        dataloader_pin_memory=False,
    )
    Trainer(Model(), options, train_dataset=data, eval_dataset=data[:16]).train()
