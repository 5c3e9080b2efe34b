"""Jobs that may be stopped for others and go on later, or be put back to start from the beginning (`restartable`)."""

from collections.abc import Mapping
from typing import Any

from torchyard.spec.command import Launcher

#: Launchers of programs that do nothing but train; a shell command may write anywhere.
_LAUNCHERS = frozenset({Launcher.TORCHRUN.value, Launcher.PYTHON.value})


def stoppable(spec: Mapping[str, Any], *, saves: bool) -> bool:
    """Return whether a job of this spec, as JSON, may be stopped for others and go on later.

    `saves`: it has a checkpoint to go on from.
    """
    said = spec.get("preemptible")
    return bool(spec.get("restartable") is True or saves if said is None else said)


def starts_over(spec: Mapping[str, Any]) -> bool:
    """Return whether a job of this spec, as JSON, may start from the beginning after its trial.

    By itself (`auto`) a recipe may, and a program that runs on a copy of its code under `torchrun` or `python`: what it
    writes there is gone with the copy. What works in a folder of its owner's, through a link, or in a shell command may
    have written what a second start would write again.
    """
    said = spec.get("restartable", "auto")
    if said != "auto" or spec.get("preemptible") is False:
        return said is True
    if spec.get("recipe") is not None:
        return True
    outside = spec.get("live") or spec.get("link")
    return spec.get("code") is not None and spec.get("launcher") in _LAUNCHERS and not outside
