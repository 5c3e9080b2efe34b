"""Reasons that the job's owner is told of its checkpoints: sentences with codes, for words in another language."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

#: Bytes of what reasons are made of, as JSON: the shim reads marks of 4 KiB, which hold the text, too.
MAX_BYTES = 2048
#: What is not exactly as it was when a training goes on, and why nothing could be saved.
TEMPLATES = {
    "other-thread": "batches are taken in another thread, which may be ahead of the training",
    "several-passes": "several passes through the loader feed one step",
    "ahead": "batches are taken ahead of the step that uses them",
    "idle-steps": "steps are reported that took no batch from the loader",
    "more-before": "a pass through the loader that came before the epoch's own takes more batches than it had taken",
    "other-pass": "the steps of the epoch come from another pass through the loader than before",
    "passes-fed": "steps of the epoch came from several passes through the loader",
    "broken-off": "the loop over the loader was left early, perhaps not at the batch where it would have been",
    "many-passes": "each batch is taken from a pass of its own through the loader",
    "unbounded": "the loop is not one over `run.epochs`: what the script counts or draws outside of its batches is not "
    "known",
    "other-loader": "batches are also taken from a loader that is not attached, which begins anew",
    "other-batches": "its batches are not those of the checkpoint (number of ranks or batch size): the epoch is begun "
    "anew",
    "reads-ahead": "the loader reads one batch ahead, and its data set draws from the global random streams",
    "read-again": "the data set is an iterable: its first {count} batches are read again and dropped",
    "placeless": "the loader is a {kind}, which does not tell its place: an epoch is begun anew",
    "other-places": "each of another number of ranks had its own place in the data: the epoch is begun anew",
    "begins-anew": "it has no {names} of each rank's own: it begins anew",
    "new-streams": "there were {ranks} ranks: random streams are new ones",
    "gradients-lost": "gradients that {ranks} ranks had accumulated for their next step are not loaded",
    "ranks-own": "what was each of {ranks} ranks' own is not loaded: {names}",
    "no-streams": "it holds no random streams",
    "no-room": "{free} MiB are free, of which {floor} MiB stay free, and it takes twice {size} MiB",
    "not-written": "it cannot be written: {error} ({free} MiB are free)",
    "save-late": "its next save_state is not due within the grace: set a longer grace, or save more often",
    "late": "no checkpoint was ready within its grace",
    "empty": "Nothing was written into the checkpoint folder: save your state inside the `with` block.",
    "no-group": "Several ranks, but torch.distributed is not initialised: take checkpoints between init and destroy.",
    "other-rank": "Another rank failed in this checkpoint, so it was not committed: see that rank's log.",
    "separate-disks": "Ranks write a sharded checkpoint into one folder, but not all of them see that of rank 0: start "
    "them in a folder that they share, or through the queue, which brings the files of several nodes together.",
    "own-file": "{name} is TorchYard's own file: choose another name",
    "a-link": "{path} is a link: a checkpoint holds files, copy it",
}


class CheckpointReason(str):
    """An English sentence that knows its code and what is put into it; str() of it is plain text."""

    code: str
    params: dict[str, Any]

    def __new__(cls, code: str, **params: Any) -> CheckpointReason:
        made = super().__new__(cls, TEMPLATES[code].format(**params))
        made.code, made.params = code, params
        return made


def known(text: str) -> str:
    """Return the reason that a stored text is, if it is one that takes no params."""
    code = next((code for code, template in TEMPLATES.items() if template == text), None)
    return text if code is None else CheckpointReason(code)


def of_error(error: object) -> object:
    """Return the reason that an exception of ours was made with, else the exception."""
    args = getattr(error, "args", ())
    return args[0] if args and isinstance(args[0], CheckpointReason) else error


def parts(reasons: Sequence[object]) -> dict[str, list[dict[str, Any]]]:
    """Return messages, codes and params below `parts`; nothing where none has a code, or they are too long."""
    told = [_part(each) for each in reasons]
    coded = any(each["code"] for each in told)
    return {"parts": told} if coded and len(json.dumps(told)) <= MAX_BYTES else {}


def _part(reason: object) -> dict[str, Any]:
    if isinstance(reason, CheckpointReason):
        return {"message": str(reason), "code": reason.code, "params": reason.params}
    return {"message": str(reason), "code": None, "params": {}}
