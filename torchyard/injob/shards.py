"""Parameters and optimizer state in pieces, each rank's own, by `torch.distributed.checkpoint`.

Tensors have the names that the parameters have alone, so another number of ranks or of stages finds its part:
``model.<name>`` and ``optimizer.<name>.<key>``. The formats of the files are torch's.
Source: https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from torchyard.injob import place
from torchyard.injob.exceptions import AttachError, CheckpointError
from torchyard.injob.modules import Models, differences, shapes, some
from torchyard.injob.optimizers import Optimizers

FOLDER = "shards"
#: Written by torch when all shards are there.
INDEX = os.path.join(FOLDER, ".metadata")
#: Before the names of parameters and buffers.
MODEL = "model."
_OPTIMIZER = "optimizer."


def wanted(models: Sequence[Any]) -> bool:
    """Return whether a parameter is a DTensor: no rank has it whole."""
    parts = [model for model in models if hasattr(model, "parameters")]
    if any(kind.__name__ == "FullyShardedDataParallel" for part in parts for kind in _kinds(part)):
        raise AttachError("FullyShardedDataParallel keeps flat parameters that have no names: use fully_shard")
    return any(hasattr(parameter, "device_mesh") for part in parts for parameter in part.parameters())


def _kinds(model: Any) -> set[type]:
    return {kind for module in model.modules() for kind in type(module).__mro__}


def collect(models: Models, optimizers: Optimizers) -> dict[str, Any]:
    """The tensors that this rank has a part in, by name."""
    found = {MODEL + name: value for name, value in models.state().items()}
    for name, values in optimizers.by_name(models.parameters()).items():
        for key, value in values.items():
            if hasattr(value, "shape"):
                found["%s%s.%s" % (_OPTIMIZER, name, key)] = value
    for name, value in found.items():
        if not hasattr(value, "shape"):
            raise AttachError("%s is no tensor: a sharded model's state_dict() must hold nothing else" % name)
    return found


def values(models: Models, optimizers: Optimizers) -> dict[str, Any]:
    """Optimizer state of each parameter beside tensors: its numbers, and the options of its group."""
    parameters = models.parameters()
    plain = {
        name: {key: value for key, value in values.items() if not hasattr(value, "shape")}
        for name, values in optimizers.by_name(parameters).items()
    }
    return {"values": plain, "groups": optimizers.groups(parameters), "classes": optimizers.classes()}


def write(tensors: Mapping[str, Any], folder: str, group: Any) -> None:
    """Write the shards of all ranks, which talk over `group`; raises on all of them if one cannot."""
    dcp = importlib.import_module("torch.distributed.checkpoint")
    writer = dcp.FileSystemWriter(os.path.join(folder, FOLDER))
    try:
        dcp.save(dict(tensors), storage_writer=writer, process_group=group, **_alone())
    except importlib.import_module("torch.distributed.checkpoint.api").CheckpointException as error:
        # It is no Exception, and holds a trace for each rank.
        reasons = ["rank %s: %s" % (rank, failure[0]) for rank, failure in sorted(error.failures.items())]
        raise CheckpointError("; ".join(reasons)) from error


def _alone() -> dict[str, Any]:
    return {"no_dist": True} if place.process_group() is None else {}


def _reader(folder: str) -> Any:
    return importlib.import_module("torch.distributed.checkpoint").FileSystemReader(os.path.join(folder, FOLDER))


def unlike(folder: str, models: Models, optimizers: Optimizers, values: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why the shards cannot be loaded, in words; nothing if they can. Ranks may have different parameters."""
    there = _sizes(folder, MODEL)
    here = shapes(models.state())
    found = differences(here, {name: there[name] for name in here if name in there})
    classes = {name for each in values for name in each["classes"]}
    if not classes.issuperset(optimizers.classes()):
        found.append("its optimizer is %s, here is %s" % (some(sorted(classes)), some(optimizers.classes())))
    return found


def _sizes(folder: str, prefix: str) -> dict[str, Any]:
    entries = _reader(folder).read_metadata().state_dict_metadata
    return {name[len(prefix) :]: tuple(entry.size) for name, entry in entries.items() if name.startswith(prefix)}


def load(folder: str, models: Models, optimizers: Optimizers, values: Sequence[Mapping[str, Any]]) -> None:
    """Load this rank's part. All ranks call it."""
    parameters = models.parameters()
    model = {MODEL + name: value for name, value in models.state().items()}
    state = _template(folder, optimizers.names(parameters))
    flat = {"%s%s.%s" % (_OPTIMIZER, name, key): value for name, each in state.items() for key, value in each.items()}
    dcp = importlib.import_module("torch.distributed.checkpoint")
    dcp.load({**model, **flat}, storage_reader=_reader(folder), **_alone())
    known = {name: value for each in values for name, value in each["values"].items()}
    options = {name: value for each in values for name, value in each["groups"].items()}
    optimizers.load_by_name(
        parameters, {name: {**known.get(name, {}), **state.get(name, {})} for name in parameters}, options
    )


def _template(folder: str, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Tensors of the optimizer to load into: as a parameter is sharded where the shape is its own, else whole."""
    torch = sys.modules["torch"]
    found: dict[str, dict[str, Any]] = {name: {} for name in parameters}
    for place_, entry in _reader(folder).read_metadata().state_dict_metadata.items():
        name, _, key = place_[len(_OPTIMIZER) :].rpartition(".")
        if not place_.startswith(_OPTIMIZER) or name not in parameters:
            continue
        like, dtype = parameters[name], entry.properties.dtype
        same = tuple(entry.size) == tuple(like.shape)
        found[name][key] = torch.zeros_like(like, dtype=dtype) if same else torch.zeros(tuple(entry.size), dtype=dtype)
    return found
