"""The training's state in two portable files.

``model.pt`` is the plain state dict: CPU tensors by the names that the model has alone, loadable without DDP and on
any device. ``training.pt`` is the rest: optimizer, place in the data, and the random streams of every rank.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trainer import randomness
from trainer.distributed import World, gathered
from trainer.exceptions import ResumeError

MODEL = "model.pt"
TRAINING = "training.pt"
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Position:
    """How far the training is."""

    #: Optimizer steps done.
    step: int
    epoch: int
    #: Samples of this epoch that all ranks have trained on.
    consumed: int


@dataclass(frozen=True, kw_only=True)
class RankState:
    """What only this rank knows."""

    random: dict[str, Any]
    #: Sum of losses and count of samples since the last report.
    window: tuple[float, float]


def save(
    folder: Path,
    *,
    model: Mapping[str, Tensor],
    optimizer: Optimizer,
    position: Position,
    window: tuple[float, float],
    recipe: dict[str, Any],
    world: World,
) -> None:
    """Writes both files from rank 0. Every rank calls it."""
    ranks = gathered({"random": randomness.state(world.device), "window": window}, world)
    if not world.leads:
        return
    training = {
        "format": FORMAT,
        "recipe": recipe,
        "position": asdict(position),
        "optimizer": _on_cpu(optimizer.state_dict()),
        "ranks": ranks,
    }
    torch.save(dict(model), folder / MODEL)
    torch.save(training, folder / TRAINING)


def load(
    folder: Path, *, model: nn.Module, optimizer: Optimizer, recipe: dict[str, Any], world: World
) -> tuple[Position, RankState | None]:
    """Fills model and optimizer; answers the position, and this rank's own state if the ranks are as many as then.

    With another number of ranks the random streams start anew and the loss not yet reported is left out. Raises
    ResumeError when the checkpoint does not fit.
    """
    try:
        weights = torch.load(folder / MODEL, map_location="cpu", weights_only=True)
        training = torch.load(folder / TRAINING, map_location="cpu", weights_only=True)
        _check(training["recipe"], recipe)
        model.load_state_dict(weights)
        optimizer.load_state_dict(training["optimizer"])
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        raise ResumeError(f"{ResumeError.__doc__} In {folder}: {error}") from error
    position = Position(**training["position"])
    if len(training["ranks"]) != world.size:
        return position, None
    return position, RankState(**training["ranks"][world.rank])


def _check(saved: dict[str, Any], recipe: dict[str, Any]) -> None:
    if saved["model"] != recipe["model"]:
        raise ValueError(f"it holds model {saved['model']}, the recipe says {recipe['model']}")
    if saved["optim"]["name"] != recipe["optim"]["name"]:
        raise ValueError(f"it holds the state of {saved['optim']['name']}, the recipe says {recipe['optim']['name']}")


def _on_cpu(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: _on_cpu(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_on_cpu(item) for item in value]
    return value
