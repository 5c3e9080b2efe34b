"""State of a training, written into a checkpoint's folder and read back.

    model.pt        the model alone, tensors by name; sharded: absent
    training.pt     format, ranks, step, epoch, optimizer, what is equal on all ranks, what the script adds
    rank-<r>.pt     that rank's random streams, place in the data, and what is its own
    shards/         sharded: parameters and the tensors of the optimizer, by `torch.distributed.checkpoint`

All of it is plain data, loaded with ``weights_only=True``.
"""

from __future__ import annotations

import inspect
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchyard.injob import collective, files, place, plain, random_streams, shards
from torchyard.injob.cursor import Cursor
from torchyard.injob.exceptions import CheckpointError, ResumeError
from torchyard.injob.gradients import Gradients
from torchyard.injob.modules import Models, some
from torchyard.injob.optimizers import Optimizers
from torchyard.injob.reasons import CheckpointReason

FORMAT = 1
MODEL = "model.pt"
TRAINING = "training.pt"
_PART = ".part"


@dataclass(frozen=True)
class TrainingState:
    """The objects whose state a checkpoint holds."""

    models: Models
    optimizers: Optimizers
    gradients: Gradients
    #: Equal on all ranks.
    stateful: Mapping[str, Any]
    #: Each rank's own.
    ranks: Mapping[str, Any]
    cursor: Cursor
    sharded: bool
    extra: Mapping[str, Any]


@dataclass(frozen=True)
class Position:
    """Progress of a training: optimizer steps done, and the epoch it is in or about to begin."""

    step: int = 0
    epoch: int = 0


@dataclass(frozen=True)
class StateSnapshot:
    """Copy of what this rank writes: values by file name, tensors by name for the shards."""

    files: Mapping[str, Any]
    shards: Mapping[str, Any] | None

    def write(self, folder: str, group: Any = None) -> None:
        """Write it; shards together with the other ranks, which talk over `group`. Raises CheckpointError."""
        try:
            self._write(folder, group)
            return
        except (OSError, RuntimeError) as error:
            # torch's own message does not tell a full disk.
            failure = CheckpointReason("not-written", error=str(error), free=shutil.disk_usage(folder).free >> 20)
        # Not from the first error, whose trace keeps the torn file open and so its room on the disk taken.
        raise CheckpointError(failure)

    def _write(self, folder: str, group: Any) -> None:
        # First, because a rank that fails here fails on all: none is left waiting for it.
        if self.shards is not None:
            shards.write(self.shards, folder, group)
        for name, value in self.files.items():
            path = os.path.join(folder, name)
            sys.modules["torch"].save(value, path + _PART)
            files.fsync(path + _PART)
            # Under its own name it is whole, for others that look.
            os.rename(path + _PART, path)


def names(state: TrainingState) -> list[str]:
    """Files of a whole checkpoint on this node's disk, as the rank that leads there knows them."""
    common = [TRAINING, *([shards.INDEX] if state.sharded else [])] if place.rank() == 0 else []
    return common + [_rank_file(rank) for rank in _ranks_here()]


def _ranks_here() -> range:
    rank, count = place.rank(), collective.world_size()
    if place.current() is None or os.environ.get("RANK") != str(rank):
        return range(count)
    return range(rank, min(count, rank + int(os.environ.get("LOCAL_WORLD_SIZE", count))))


def take(state: TrainingState, position: Position, tensor: Callable[[Any], Any]) -> StateSnapshot:
    """The state of this moment, with `tensor` applied to each tensor. On every rank at once."""
    found: dict[str, Any] = {_rank_file(place.rank()): _own(state)}
    common = {
        "format": FORMAT,
        "ranks": collective.world_size(),
        "step": position.step,
        "epoch": position.epoch,
        "extra": state.extra,
        **_named(state.stateful, "stateful"),
    }
    pieces = None
    if state.sharded:
        pieces = shards.collect(state.models, state.optimizers)
        found[_rank_file(place.rank())]["optimizer"] = shards.values(state.models, state.optimizers)
    else:
        model, common["optimizer"] = state.models.state(), state.optimizers.state()
        if model:
            found[MODEL] = model
    found[TRAINING] = common
    kept = found if place.rank() == 0 else {name: found[name] for name in [_rank_file(place.rank())]}
    return StateSnapshot(
        files={name: plain.walk(value, tensor, name) for name, value in kept.items()},
        shards=None if pieces is None else {name: tensor(value) for name, value in pieces.items()},
    )


def _own(state: TrainingState) -> dict[str, Any]:
    return {
        "random": state.cursor.random or random_streams.capture(),
        "loader": state.cursor.state(),
        "gradients": state.gradients.state(),
        **_named(state.ranks, "own"),
    }


def _named(stateful: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {key: {name: each.state_dict() for name, each in stateful.items()}}


def _rank_file(rank: int) -> str:
    return "rank-%d.pt" % rank


def check(state: TrainingState) -> None:
    """Raise AttachError for what could not be saved, before the training has begun."""
    state.models.check()
    for name, each in {**state.stateful, **state.ranks}.items():
        plain.walk(each.state_dict(), lambda tensor: tensor, name + ".state_dict()")
    plain.walk(state.extra, lambda tensor: tensor, "extra")


class LoadedCheckpoint:
    """A checkpoint to continue from, read; nothing is changed before `load`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._common = self._read(TRAINING)
        if self._common["format"] != FORMAT:
            raise ResumeError(
                "%s has format %s: resume with the TorchYard that wrote it" % (folder, self._common["format"])
            )
        self.position = Position(step=self._common["step"], epoch=self._common["epoch"])
        self.extra: dict[str, Any] = self._common["extra"]
        self.sharded = os.path.isdir(os.path.join(folder, shards.FOLDER))
        #: Why the run is not exactly the one that was stopped.
        self.inexact: list[str] = []
        #: Where this rank's streams go on.
        self.random: dict[str, Any] = {}

    def _read(self, name: str, **options: Any) -> Any:
        torch = sys.modules["torch"]
        path = os.path.join(self._folder, name)
        try:
            return torch.load(path, map_location="cpu", weights_only=True, **options)
        except FileNotFoundError:
            raise ResumeError("%s is not there: is this a checkpoint of torchyard.attach?" % path) from None
        except (pickle.UnpicklingError, EOFError, OSError, RuntimeError) as error:
            raise ResumeError("%s cannot be read: %s" % (path, error)) from error

    def load(self, state: TrainingState) -> None:
        """Bring all objects where they were; raises ResumeError, before it changes one, if they do not fit."""
        model = None if self.sharded else self._model()
        own = self._owns()
        differences = self._differences(state, model, own)
        fits = collective.all_true(not differences)
        if not fits:
            reasons = "; ".join(differences) or "another rank cannot load it, see its log"
            raise ResumeError("%s does not fit this training: %s" % (self._folder, reasons))
        try:
            self._load(state, model, own)
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            raise ResumeError("%s does not fit this training: %s" % (self._folder, error)) from error

    def _model(self) -> Mapping[str, Any]:
        if not os.path.exists(os.path.join(self._folder, MODEL)):
            return {}
        found: Mapping[str, Any] = self._read(MODEL, **_mapped())
        return found

    def _differences(self, state: TrainingState, model: Mapping[str, Any] | None, own: Sequence[Any]) -> list[str]:
        if model is None:
            values = [each["optimizer"] for each in own]
            found = shards.unlike(self._folder, self._in_pieces(state), state.optimizers, values)
        elif state.sharded:
            return ["it is not sharded: give sharded=False"]
        else:
            found = state.models.differences(model) + state.optimizers.differences(self._common["optimizer"])
        return found + _unlike(self._common["stateful"], self._whole(state))

    def _load(self, state: TrainingState, model: Mapping[str, Any] | None, own: Sequence[Any]) -> None:
        if model is None:
            shards.load(self._folder, self._in_pieces(state), state.optimizers, [each["optimizer"] for each in own])
        else:
            state.models.load(model)
            state.optimizers.load(self._common["optimizer"])
        for name, each in self._whole(state).items():
            each.load_state_dict(self._common["stateful"][name])
        self._load_own(state, own)

    def _whole(self, state: TrainingState) -> Mapping[str, Any]:
        """State that is equal on all ranks, but for what a sharded checkpoint has in pieces beside the model."""
        there = self._common["stateful"]
        return {name: each for name, each in state.stateful.items() if not self.sharded or name in there}

    def _in_pieces(self, state: TrainingState) -> Models:
        moved = [each for name, each in state.stateful.items() if name not in self._whole(state)]
        return state.models.beside(moved)

    def _owns(self) -> list[Any]:
        """State that each rank had of its own, by rank; only this rank's where no other's is wanted."""
        wanted = [place.rank()] if self._same_ranks() and not self.sharded else range(self._common["ranks"])
        return [self._read(_rank_file(rank), **_mapped(rank != place.rank())) for rank in wanted]

    def _same_ranks(self) -> bool:
        return bool(self._common["ranks"] == collective.world_size())

    def _load_own(self, state: TrainingState, own: Sequence[Any]) -> None:
        places = [each["loader"] for each in own]
        if not self._same_ranks():
            self._load_other_ranks(state, own)
            state.cursor.load(places, self.random, other_ranks=True)
            return
        mine = own[place.rank()] if self.sharded else own[0]
        for name, each in state.ranks.items():
            if name in mine["own"]:
                each.load_state_dict(mine["own"][name])
        state.gradients.load(mine.get("gradients", []))
        if missing := [name for name in state.ranks if name not in mine["own"]]:
            self.inexact.append(CheckpointReason("begins-anew", names=some(missing)))
        self.random = mine["random"]
        state.cursor.load([mine["loader"]], self.random, other_ranks=False)

    def _load_other_ranks(self, state: TrainingState, own: Sequence[Any]) -> None:
        streams = [each["random"] for each in own]
        self.random = streams[0]
        if not random_streams.same(streams):
            self.random = random_streams.derived(streams, place.rank(), collective.world_size())
            self.inexact.append(CheckpointReason("new-streams", ranks=len(own)))
        if any(any(each.get("gradients", [])) for each in own):
            self.inexact.append(CheckpointReason("gradients-lost", ranks=len(own)))
        if state.ranks:
            self.inexact.append(CheckpointReason("ranks-own", ranks=len(own), names=some(list(state.ranks))))


def _mapped(wanted: bool = True) -> dict[str, Any]:
    """Option of `torch.load` that reads what is used only, and shares it between ranks; torch 2.0 has none."""
    can = "mmap" in inspect.signature(sys.modules["torch"].load).parameters
    return {"mmap": True} if wanted and can else {}


def _unlike(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    missing, surplus = [name for name in here if name not in there], [name for name in there if name not in here]
    return (["it has no %s" % some(missing)] if missing else []) + (
        ["it also has %s, which is not attached" % some(surplus)] if surplus else []
    )
