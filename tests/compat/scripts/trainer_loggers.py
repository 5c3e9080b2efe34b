"""A Trainer of transformers that reports to the trackers that it is given, with its own bars: two epochs of four steps.

It prints what it logged, for the test.
"""

import json
import sys

import torch
from huggingface_trainer import Classifier, Points
from transformers import Trainer, TrainerCallback, TrainingArguments


class Recorder(TrainerCallback):
    """Keeps what every callback is given."""

    def __init__(self):
        self.given = {}

    def on_log(self, args, state, control, logs=None, **_):
        for name, value in logs.items():
            self.given.setdefault(name, []).append((state.global_step, float(value)))


if __name__ == "__main__":
    torch.manual_seed(0)
    recorder = Recorder()
    settings = TrainingArguments(
        output_dir="out",
        num_train_epochs=2,
        per_device_train_batch_size=32,
        logging_steps=1,
        eval_strategy="epoch",
        save_strategy="epoch",
        report_to=sys.argv[1:],
        use_cpu=True,
    )
    trainer = Trainer(Classifier(), settings, train_dataset=Points(128), eval_dataset=Points(16), callbacks=[recorder])
    trainer.train()
    print("given " + json.dumps(recorder.given), flush=True)
