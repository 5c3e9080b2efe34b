"""TorchYard: a training job queue for teams that share a GPU box.

In a training script: `attach`, or underneath `report`, `should_checkpoint`, `checkpoint` and `restore`. They need only
the standard library, run on Python 3.9, and do nothing harmful off the queue. `Client` and `JobSpec` submit and follow
jobs; they need the whole distribution.
"""

from __future__ import annotations

TYPE_CHECKING = False  # that of `typing` costs a job four milliseconds
if TYPE_CHECKING:
    from typing import Any

    from torchyard.client.client import Client
    from torchyard.injob.attach import attach
    from torchyard.injob.checkpoints import checkpoint, restore
    from torchyard.injob.control import should_checkpoint
    from torchyard.injob.metrics import report
    from torchyard.spec import JobSpec

__all__ = ["Client", "JobSpec", "attach", "checkpoint", "report", "restore", "should_checkpoint"]

_HOMES = {
    "Client": "torchyard.client.client",
    "JobSpec": "torchyard.spec",
    "attach": "torchyard.injob.attach",
    "checkpoint": "torchyard.injob.checkpoints",
    "report": "torchyard.injob.metrics",
    "restore": "torchyard.injob.checkpoints",
    "should_checkpoint": "torchyard.injob.control",
}


def __getattr__(name: str) -> Any:
    if name != "__version__" and name not in _HOMES:
        raise AttributeError(f"module 'torchyard' has no attribute {name!r}")
    try:
        if name == "__version__":
            value = __import__("importlib.metadata", fromlist=["version"]).version("torchyard")
        else:
            value = getattr(__import__(_HOMES[name], fromlist=[name]), name)
    except ModuleNotFoundError as error:
        # Inside a job only the in-job part is on the path, and `hasattr` must say so rather than raise.
        raise AttributeError(f"torchyard.{name} needs the torchyard distribution ({error})") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
