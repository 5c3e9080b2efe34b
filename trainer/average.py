"""``python -m trainer.average --out model.pt checkpoint…``: one model from the mean of several.

A checkpoint is a folder that the trainer or `torchyard.attach` wrote, or a file with a plain state dict. The mean of
weights along one run, or of runs from the same start, often generalises better than the last (Izmailov et al. 2018,
"Averaging Weights Leads to Wider Optima"); of unrelated runs it is worth nothing. Running statistics of batch
normalisation are averaged too, which is only near to what the averaged weights would gather.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from torchyard.injob import state
from trainer.exceptions import AverageError

State = dict[str, Tensor]


def read(path: Path) -> State:
    """The model of a checkpoint, on the CPU by the names that it has alone."""
    if path.is_dir():
        return state.portable_model(path)
    loaded: State = torch.load(path, map_location="cpu", weights_only=True)
    return loaded


def mean(models: Iterable[State]) -> State:
    """The mean of floating point tensors; others (counters) are the last one's. Raises AverageError."""
    total: State = {}
    last: State = {}
    count = 0
    for model in models:
        if last and _outline(model) != _outline(last):
            raise AverageError(f"{AverageError.__doc__} Checkpoint {count + 1} has other names or shapes")
        for name, value in model.items():
            if value.is_floating_point():
                total[name] = value.double() + total.get(name, 0.0)
        last, count = model, count + 1
    if not count:
        raise AverageError("there is nothing to average: name at least one checkpoint")
    return {name: (total[name] / count).to(value.dtype) if name in total else value for name, value in last.items()}


def _outline(model: State) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in model.items()}


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m trainer.average", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkpoints", type=Path, nargs="+", help="folders or files with a state dict")
    parser.add_argument("--out", type=Path, required=True, help="file to write, a plain state dict")
    options = parser.parse_args(given)
    torch.save(mean(map(read, options.checkpoints)), options.out)


if __name__ == "__main__":
    main()
