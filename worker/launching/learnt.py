"""Modules that the jobs of an environment have imported, which its fork server loads for the next.

What a job tells is its account's to write: names are checked, counted and kept for the servers of that account alone,
and nothing here imports any of them.
"""

import json
import logging
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from torchyard import home
from torchyard.injob import layout
from torchyard.injob.imported import MAX_LENGTH, MAX_NAMES
from worker.attempts import opening
from worker.attempts.folder import AttemptFolder
from worker.forkserver.preload import WORDS, parents

logger = logging.getLogger(__name__)

#: Environments of which something is kept.
MAX_KEYS = 64
#: Bytes of what a job tells that are read.
MAX_REPORT: Final = 1 << 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_OWN = "own "
#: Why a package is not loaded although it could be.
SHADOWED: Final = "the folder of a job has a module of its name"


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """The report of a job: installed modules that it has imported, and names of modules in its own folder."""

    installed: Sequence[str] = ()
    own: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """The modules learnt of one environment."""

    names: Sequence[str] = ()
    """In order of import."""
    struck: Mapping[str, str] = field(default_factory=dict)
    """Why modules are not loaded."""

    def wanted(self) -> list[str]:
        """Return the names that a server loads: not those that were struck off, nor what lies in them."""
        return [name for name in self.names if not {name, *parents(name)} & self.struck.keys()]


def parse(text: str) -> ImportReport:
    """Return what a job has told; what is no name of a module, or one too many, is left out."""
    lines = text.split("\n")[:-1]  # the last one may be cut
    installed = dict.fromkeys(line for line in lines if _is_name(line))
    own = (line[len(_OWN) :] for line in lines if line.startswith(_OWN))
    return ImportReport(
        installed=tuple(installed)[:MAX_NAMES], own=frozenset([name for name in own if _is_name(name)][:MAX_NAMES])
    )


def _is_name(text: str) -> bool:
    return len(text) <= MAX_LENGTH and _NAME.fullmatch(text) is not None


def with_report(known: Learnt, told: ImportReport) -> Learnt:
    """Add what a job has told. Once there are as many names as can be kept no others come."""
    names = tuple(dict.fromkeys([*known.names, *told.installed]))[:MAX_NAMES]
    tops = {name.partition(".")[0] for name in names}
    return Learnt(names=names, struck={**known.struck, **dict.fromkeys(sorted(tops & told.own), SHADOWED)})


def with_struck(known: Learnt, reasons: Any) -> Learnt:
    """Strike off what a server names of what it was to load, with its reasons."""
    found = reasons if isinstance(reasons, dict) else {}
    names = set(known.names)
    words = {name: " ".join(str(why).split())[:WORDS] for name, why in found.items() if name in names}
    return Learnt(names=known.names, struck={**known.struck, **words})


@dataclass(kw_only=True)
class LearntModules:
    """The modules learnt of all environments (by `ServerKey.digest`), in a file that outlives the worker.

    Every method may be called from any thread.
    """

    path: Path | None = None
    """None: it is forgotten with this object."""
    _known: dict[str, Learnt] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        if self.path is not None:
            self._known = _read(self.path)

    def wanted(self, environment: str) -> list[str]:
        """Return the modules that a server of this environment loads, in order."""
        with self._lock:
            return self._known.get(environment, Learnt()).wanted()

    def struck(self, environment: str) -> Mapping[str, str]:
        """Return why modules of this environment are not loaded."""
        with self._lock:
            return self._known.get(environment, Learnt()).struck

    def take(self, environment: str, told: ImportReport) -> None:
        """Learn from what a job has told."""
        self._set(environment, lambda known: with_report(known, told))

    def strike(self, environment: str, reasons: Any) -> None:
        """Never load these modules again, until the installed packages change."""
        self._set(environment, lambda known: with_struck(known, reasons))

    def forgive(self, environment: str) -> None:
        """The installed packages have changed: what could not be loaded may be."""
        self._set(environment, lambda known: Learnt(names=known.names))

    def _set(self, environment: str, change: Callable[[Learnt], Learnt]) -> None:
        with self._lock:
            known = self._known.pop(environment, Learnt())
            changed = change(known)
            self._known[environment] = changed  # as the newest
            for oldest in list(self._known)[: -MAX_KEYS or None]:
                del self._known[oldest]
            if self.path is not None and changed != known:
                _write(self.path, self._known)


def read_report(folder: AttemptFolder, owner: int) -> ImportReport:
    """Return what rank 0 of an attempt has told; nothing where it has not, or not as it should."""
    try:
        with opening.file_inside(folder.path, f"{layout.MARKS}/{layout.imported_mark(0)}", owner) as descriptor:
            return parse(os.pread(descriptor, MAX_REPORT, 0).decode(errors="replace"))
    except OSError:
        return ImportReport()


def _read(path: Path) -> dict[str, Learnt]:
    try:
        content = json.loads(path.read_text())
        return {name: Learnt(names=tuple(each["names"]), struck=each["struck"]) for name, each in content.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        logger.warning("%s is of no use, jobs teach anew: %s", path, error)
        return {}


def _write(path: Path, known: Mapping[str, Learnt]) -> None:
    content = {name: {"names": list(each.names), "struck": dict(each.struck)} for name, each in known.items()}
    try:
        home.write_private(path, json.dumps(content))
    except OSError as error:
        logger.warning("what was learnt of modules is not kept: %s", error)
