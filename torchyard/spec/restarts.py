"""Jobs that may be stopped for others and go on later, or be put back to start from the beginning (`restartable`)."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from torchyard.spec.command import Launcher
from torchyard.spec.policy import Policy

#: Launchers of programs that do nothing but train; a shell command may write anywhere.
_LAUNCHERS = frozenset({Launcher.TORCHRUN.value, Launcher.PYTHON.value})


class StartsOver(IntEnum):
    """Permission of a job to be put back; the numbers are those of the column `restartable` in a trace."""

    NEVER = 0
    #: By itself, as what it runs can be started twice (`auto`): its project and the policy may forbid it.
    AUTO = 1
    #: Its spec asks for it (`true`): no project forbids that.
    ASKED = 2


def stoppable(spec: Mapping[str, Any], *, saves: bool) -> bool:
    """Return whether a job of this spec, as JSON, may be stopped for others and go on later.

    `saves`: it has a checkpoint to go on from.
    """
    said = spec.get("preemptible")
    return bool(spec.get("restartable") is True or saves if said is None else said)


def starts_over(spec: Mapping[str, Any]) -> StartsOver:
    """Return whether a job of this spec, as JSON, may start from the beginning after its trial.

    By itself (`auto`) a recipe may, and a program that runs on a copy of its code under `torchrun` or `python`: what it
    writes there is gone with the copy. What works in a folder of its owner's, through a link, or in a shell command may
    have written what a second start would write again.
    """
    said = spec.get("restartable", "auto")
    if said != "auto" or spec.get("preemptible") is False:
        return StartsOver.ASKED if said is True else StartsOver.NEVER
    if spec.get("recipe") is not None:
        return StartsOver.AUTO
    outside = spec.get("live") or spec.get("link")
    plain = spec.get("code") is not None and spec.get("launcher") in _LAUNCHERS and not outside
    return StartsOver.AUTO if plain else StartsOver.NEVER


def may_be_put_back(
    says: StartsOver, project: str, policy: Policy, *, attempts: int, restarts: int, project_restarts: bool = True
) -> bool:
    """Return whether a job may be put back after its trial, by its spec, its project and the policy.

    `attempts` were there before this trial, and `restarts` is the number of the last of them that was put back: if
    another came after that, what it has left would be lost. `project_restarts`: its project lets jobs be put back.
    """
    allowed = project_restarts and project not in policy.no_restarts
    return (
        says is StartsOver.ASKED or (says is StartsOver.AUTO and allowed)
    ) and attempts <= restarts < policy.restarts
