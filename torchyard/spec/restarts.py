"""Permissions of a job's spec to stop it for others: stopped and continued, or put back to start from the beginning.

Two independent questions, answered from the spec as JSON. `stoppable`: may it be stopped and go on later from a
checkpoint, or anew if it says `restartable: true`? `may_be_put_back`: if it cannot be stopped, may it lose what little
its trial has done (`service.scheduler.policy.trials`)? For the second the spec gives a `RestartPermission`, its project
and the policy may forbid what the spec has not asked for, and only so many trials in a row are put back.
"""

from collections.abc import Mapping
from enum import IntEnum, StrEnum, auto
from typing import Any

from torchyard.spec.command import Launcher
from torchyard.spec.policy import Policy

#: Launchers of programs that do nothing but train; a shell command may write anywhere.
_LAUNCHERS = frozenset({Launcher.TORCHRUN.value, Launcher.PYTHON.value})


class RestartPermission(IntEnum):
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


def restart_permission(spec: Mapping[str, Any]) -> RestartPermission:
    """Return the permission of a spec, as JSON, to start its job from the beginning after a trial.

    By itself (`auto`) a recipe may, and a program that runs on a copy of its code under `torchrun` or `python`: what it
    writes there is gone with the copy. What works in a folder of its owner's, through a link, or in a shell command may
    have written what a second start would write again.
    """
    said = spec.get("restartable", "auto")
    if said != "auto" or spec.get("preemptible") is False:
        return RestartPermission.ASKED if said is True else RestartPermission.NEVER
    if spec.get("recipe") is not None:
        return RestartPermission.AUTO
    outside = spec.get("live") or spec.get("link")
    plain = spec.get("code") is not None and spec.get("launcher") in _LAUNCHERS and not outside
    return RestartPermission.AUTO if plain else RestartPermission.NEVER


class RestartBan(StrEnum):
    """Origin of a ban on putting a job back."""

    SPEC = auto()
    #: `restarts: 0`: no job is put back.
    POLICY = auto()
    #: `no_restarts` names the job's project: only jobs that ask for it are put back.
    POLICY_FOR_PROJECT = auto()
    #: `restarts: false` of the project: only jobs that ask for it are put back.
    PROJECT = auto()


def restart_ban(
    permission: RestartPermission, project: str, policy: Policy, *, project_restarts: bool
) -> RestartBan | None:
    """Return who forbids that a job is put back as long as it has trials left; None if nobody does.

    `project_restarts`: its project lets jobs be put back that do not ask for it.
    """
    if permission is RestartPermission.NEVER:
        return RestartBan.SPEC
    if policy.restarts == 0:
        return RestartBan.POLICY
    if permission is RestartPermission.ASKED:
        return None
    if project in policy.no_restarts:
        return RestartBan.POLICY_FOR_PROJECT
    return None if project_restarts else RestartBan.PROJECT


def restarts_allowed(permission: RestartPermission, project: str, policy: Policy, *, project_restarts: bool) -> bool:
    """Return whether nobody forbids that a job is put back, as `restart_ban` has it."""
    return restart_ban(permission, project, policy, project_restarts=project_restarts) is None


def may_be_put_back(
    permission: RestartPermission,
    project: str,
    policy: Policy,
    *,
    attempts: int,
    restarts: int,
    project_restarts: bool = True,
) -> bool:
    """Return whether a job may be put back after its next trial.

    `attempts` were there before this trial, and `restarts` is the number of the last of them that was put back: if
    another came after that, what it has left would be lost.
    """
    allowed = restarts_allowed(permission, project, policy, project_restarts=project_restarts)
    return allowed and attempts <= restarts < policy.restarts
