"""`gpus: all` of a submission, decided before it is stored: no node ever gets it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection

from service.accounting import accounts
from service.db.engine import Database
from service.errors import field_problem
from service.identity.callers import Caller
from service.jobs import fit
from service.scheduler.explain.fit import never_fits
from service.scheduler.model.nodes import NodeInfo
from service.scheduler_cache.load import resources_of
from torchyard.api import NoteCode, SubmissionNote
from torchyard.spec import ALL, JobSpec, Launcher, Resources
from torchyard.translatable import TranslatableText
from torchyard.wire import DeviceKind


def resolve_gpus(db: Database, caller: Caller, data: dict[str, Any]) -> tuple[dict[str, Any], SubmissionNote | None]:
    """Return the submission with a number for `gpus: all`, and a note on it; anything else as it came.

    Raises the problem ``invalid-request`` where no number would let it start.
    """
    given = data.get("resources")
    if not isinstance(given, dict) or given.get("gpus") != ALL:
        return data, None
    try:
        wanted = Resources.model_validate({**given, "gpus": 1})
    except ValidationError:
        return _with(data, 1), None  # the spec's own check names what is wrong
    with db.read() as tx:
        infos = _useful(fit.capacity(tx, ready=True))
        most = _quota(tx, caller, data) // wanted.nodes
    if not infos:
        raise field_problem(
            "resources.gpus",
            TranslatableText(
                "all-unknown",
                "no node with usable devices is online, so how many are all of them is not known: give a number, or "
                "start a worker",
            ),
        )
    count = largest(wanted, infos)
    if 0 < most < count:
        message, code, count = f"gpus {most}, all that the quota allows", NoteCode.QUOTA_GPUS, most
    else:
        message, code = f"gpus {count}, all that a node can give", NoteCode.NODE_GPUS
    return _with(data, count), SubmissionNote(code=code, message=message, params={"count": count})


def largest(wanted: Resources, infos: list[NodeInfo]) -> int:
    """Return the most devices of a node with which the job could run on these; 1 where it never could."""
    resources = resources_of(JobSpec(command=("true",), launcher=Launcher.NONE, resources=wanted))
    most = max(len(info.slots) for info in infos)
    fitting = (
        count for count in range(most, 0, -1) if not never_fits(replace(resources, gpus=count), infos, wanted.nodes)
    )
    return next(fitting, 1)


def _useful(infos: list[NodeInfo]) -> list[NodeInfo]:
    """Return the nodes with GPUs; those with CPU slots where there are no others."""
    filled = [info for info in infos if info.slots]
    return [info for info in filled if any(slot.kind == DeviceKind.GPU for slot in info.slots)] or filled


def _quota(tx: Connection, caller: Caller, data: Mapping[str, Any]) -> int:
    """Return the GPUs that user and project may hold at once."""
    stored = accounts.stored(tx)
    project = data.get("project", JobSpec.model_fields["project"].default)
    keys: list[accounts.AccountKey] = [("user", caller.user_id), ("project", str(project))]
    found = [accounts.limits(stored, key).max_gpus for key in keys]
    return min((most for most in found if most is not None), default=2**31)


def _with(data: dict[str, Any], gpus: int) -> dict[str, Any]:
    return {**data, "resources": {**data["resources"], "gpus": gpus}}
