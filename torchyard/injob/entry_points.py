"""Entry points of framework extensions: the worker copies this file beside the in-job package, under a name
that no script has, and names it in a ``dist-info`` folder there.

A script may bring a `torchyard` of its own, and nothing here may keep a framework from starting.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

#: The file's name beside the package.
MODULE = "torchyard_entry_points"
#: Entry points by group: what in this module is called.
GROUPS = {
    "lightning.pytorch.callbacks_factory": "lightning_callbacks",
    "pytorch_lightning.callbacks_factory": "pytorch_lightning_callbacks",
    # torch calls these when it is imported, from 2.5 on.
    "torch.backends": "torch_imported",
    "mlflow.run_context_provider": "mlflow_context",
}


def _check_ours() -> None:
    """Raise ImportError if `torchyard` is not what this file belongs to: a script of that name would run once more."""
    found = importlib.util.find_spec("torchyard")
    places = found.submodule_search_locations if found is not None else None
    if not any(os.path.isdir(os.path.join(each, "injob")) for each in places or ()):
        raise ImportError("torchyard")


def lightning_callbacks() -> list[Any]:
    """Callbacks for `lightning.pytorch.Trainer`."""
    return _callbacks("lightning.pytorch")


def pytorch_lightning_callbacks() -> list[Any]:
    """The same under the distribution's other name."""
    return _callbacks("pytorch_lightning")


def _callbacks(package: str) -> list[Any]:
    try:
        _check_ours()
        from torchyard.injob import lightning

        return lightning.callbacks(package)
    except Exception:  # noqa: BLE001 (the script's own `torchyard` may be anything)
        return []


def torch_imported() -> None:
    """Follow those frameworks that look for no extensions themselves, once they are imported."""
    try:
        _check_ours()
        from torchyard.injob import accelerate, gloo, huggingface, imported, importing, place, start

        if place.current() is not None:
            start.note("torch")
            imported.note_at_exit()
            gloo.finish_at_exit()
            calls: dict[str, importing.Then] = {
                "transformers.trainer": huggingface.follow_trainer,
                "accelerate.accelerator": accelerate.follow,
            }
            if not start.is_agent():  # ranks that are forked from it follow for themselves
                calls["torch.distributed"] = start.follow_process_group
                calls["torch.optim.optimizer"] = start.follow_optimizers
            importing.after(calls)
    except Exception:  # noqa: BLE001 (as above)
        return


def mlflow_context() -> Any:
    """A provider of tags for MLflow's runs."""
    try:
        _check_ours()
        from torchyard.injob import mlflow

        return mlflow.RunContext()
    except Exception:  # noqa: BLE001 (as above)
        return _NoContext()


class _NoContext:
    """A provider that provides nothing."""

    def in_context(self) -> bool:
        return False
