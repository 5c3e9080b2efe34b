"""MLflow's runs, told to the node: a tag names the job, and a mark the stores that the script has chosen."""

from __future__ import annotations

import os
import re
import sys
from urllib.parse import unquote, urlsplit

from torchyard.injob import files, layout, notes, place

#: Tag of a run with the id of the job that made it.
TAG = "torchyard.job"
_SQLITE = re.compile(r"sqlite(?:\+\w+)?:///([^?]+)(?:\?.*)?")
#: Names of stores that are no paths, though no address either.
_REMOTE = re.compile(r"databricks\b|databricks-uc\b|uc\b")


class RunContext:
    """One of MLflow's providers of tags; it asks them whenever a run begins."""

    def __init__(self) -> None:
        #: Addresses of the stores that have been told of.
        self._told: list[str] = []

    def in_context(self) -> bool:
        """Return whether the node reads the runs of this process."""
        read = os.environ.get(layout.READ_TRACKERS, "").split(",")
        return place.current() is not None and "mlflow" in read

    def tags(self) -> dict[str, str]:
        """The run's tags, once its store is told of."""
        uri = str(sys.modules["mlflow"].get_tracking_uri())
        if uri not in self._told:
            self._told.append(uri)
            self._tell(uri)
        return {TAG: os.environ.get(layout.JOB_ID, "")}

    def _tell(self, uri: str) -> None:
        path = local_path(uri)
        if path is None:
            place.say("MLflow logs to %s: its curves are there, not in TorchYard" % _without_login(uri))
            return
        stores = [found for found in map(local_path, self._told) if found is not None]
        notes.mark(layout.mlflow_mark(place.rank()), {"stores": list(dict.fromkeys(_told_of() + stores))})


def _told_of() -> list[str]:
    """Stores that other processes of this rank have told of, such as the one that started this."""
    attempt = place.current()
    if attempt is None:
        return []
    told = files.read_json(os.path.join(attempt.path(layout.MARKS), layout.mlflow_mark(place.rank())))
    return list(told["stores"]) if isinstance(told, dict) and isinstance(told.get("stores"), list) else []


def local_path(uri: str) -> str | None:
    """Absolute path of the database or folder that an address names; None for a server."""
    database = _SQLITE.fullmatch(uri)
    if database is not None:
        return os.path.realpath(database[1])
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return os.path.realpath(unquote(parts.path))
    return None if parts.scheme or _REMOTE.match(uri) else os.path.realpath(uri)


def _without_login(uri: str) -> str:
    return re.sub(r"//[^/@]*@", "//", uri)
