"""``python -m trainer.average --out model.pt checkpoint…``: one model from the mean of several.

A checkpoint is a folder that the trainer or `torchyard.attach` wrote, or a file with a plain state dict. The mean of
weights along one run, or of runs from the same start, often generalises better than the last (Izmailov et al. 2018,
"Averaging Weights Leads to Wider Optima"); of unrelated runs it is worth nothing. Running statistics of batch
normalisation are averaged too, which is only near to what the averaged weights would gather. The moving averages of
`ema_decay`, which a sharded checkpoint has beside the model, are left out.
"""

import argparse
import warnings
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load

from torchyard.injob import files, shards
from torchyard.injob.state import MODEL
from trainer.exceptions import AverageError
from trainer.optimization.ema import PREFIX

State = dict[str, Tensor]


def read(path: Path) -> State:
    """Return the model of a checkpoint, on the CPU by the names that it has alone."""
    if path.is_dir() and not (path / MODEL).exists():
        return assembled(path / shards.FOLDER)
    loaded: State = torch.load(path / MODEL if path.is_dir() else path, map_location="cpu", weights_only=True)
    return loaded


def assembled(folder: Path) -> State:
    """Put the model together from the shards of all ranks."""
    reader = FileSystemReader(folder)
    found = reader.read_metadata().state_dict_metadata
    tensors = {
        name: torch.empty(entry.size, dtype=entry.properties.dtype)
        for name, entry in found.items()
        if name.startswith(shards.MODEL) and isinstance(entry, TensorStorageMetadata) and not _averages(name, found)
    }
    with warnings.catch_warnings():
        # This process is alone on purpose.
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        load(tensors, storage_reader=reader, no_dist=True)
    return {name.removeprefix(shards.MODEL): value for name, value in tensors.items()}


def _averages(name: str, found: Container[str]) -> bool:
    """Return True for a tensor that is the moving average of another one of the checkpoint."""
    own = name.removeprefix(shards.MODEL)
    return own.startswith(PREFIX) and shards.MODEL + own.removeprefix(PREFIX) in found


def mean(models: Iterable[State]) -> State:
    """Return the mean of floating point tensors; others (counters) are the last one's. Raises AverageError."""
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
    model = mean(map(read, options.checkpoints))
    files.write_whole(str(options.out), lambda file: torch.save(model, file))


if __name__ == "__main__":
    main()
