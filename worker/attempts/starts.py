"""The moments of an attempt's start on this node, as worker, shim and rank 0 note them.

All of them read the clock since boot, which nobody sets and which is one for all processes of a machine.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from torchyard.ids import now_us
from torchyard.injob import layout
from torchyard.wire import ColdCode, NodeStart, PreloadedModules, StartMark
from worker.attempts import files, opening
from worker.attempts.folder import AttemptFolder
from worker.shim.files import steady_us

#: Bytes of a rank's marks that are read.
MAX_MARKS: Final = 4096
#: The lines of a rank's marks that say why its program was executed after all: words, code, and what that names.
COLD, COLD_CODE, COLD_SAID = "cold", "cold-code", "cold-said"


@dataclass(frozen=True, kw_only=True)
class Heard:
    """The moment at which this node heard of an attempt, by wall and steady clock, and that of the service."""

    wall_us: int = field(default_factory=now_us)
    steady_us: int = field(default_factory=steady_us)
    published_us: int | None = None


@dataclass(frozen=True, kw_only=True)
class ColdReason:
    """Why a start was cold, in words and as a code."""

    code: ColdCode
    message: str
    said: str | None = None
    """What the code names, or what another program said of it."""


@dataclass(kw_only=True)
class StartClock:
    """The marks that the worker sets on an attempt's way to its shim."""

    heard: Heard = field(default_factory=Heard)
    marks: dict[str, int] = field(default_factory=dict)

    def mark(self, name: StartMark) -> None:
        """Note that it is now."""
        self.marks[name.value] = steady_us()

    def write(self, folder: AttemptFolder, cold: ColdReason | None, preloaded: PreloadedModules | None = None) -> None:
        """Leave the marks in the folder for whoever follows the attempt, also after a restart of the worker."""
        heard = self.heard
        record = {
            "wall_us": heard.wall_us,
            "steady_us": heard.steady_us,
            "published_us": heard.published_us,
            "marks": self.marks,
            "cold_reason": cold.message if cold else None,
            "cold_code": cold.code if cold else None,
            "cold_said": cold.said if cold else None,
            "preloaded": preloaded.model_dump() if preloaded else None,
        }
        files.write_whole(folder.at(layout.START), json.dumps(record).encode(), durable=False)


class StartReader:
    """Reads what is known of an attempt's start on its first node, and what rank 0 has marked since the last time."""

    def __init__(self, folder: AttemptFolder, *, owner: int, first: bool = True) -> None:
        self._folder = folder
        self._owner = owner
        self._first = first
        self._size = -1
        self._last: NodeStart | None = None

    def read(self) -> NodeStart | None:
        """Return the start as far as it is known; None where the worker has left no marks, and on other nodes."""
        if not self._first:
            return None
        size = self._rank_size()
        if self._last is None or size != self._size:
            self._size = size
            self._last = self._read()
        return self._last

    def _read(self) -> NodeStart | None:
        own = _json(self._folder.at(layout.START))
        if own is None or not isinstance(own.get("steady_us"), int):
            return None
        shim = _json(self._folder.at(layout.SHIM)) or {}
        ranks = self._rank_marks()
        steady = dict(own["marks"])
        for name, at in ((StartMark.SHIM, shim.get("begun_us")), (StartMark.STARTED, shim.get("started_steady_us"))):
            if at is not None:
                steady[name.value] = at
        begun = steady.get(StartMark.STARTED, own["steady_us"])
        # The ranks' marks are the job's to write: nothing of theirs was before the job began, or will be.
        steady |= {name: at for name, at in _numbers(ranks).items() if begun <= at <= steady_us()}
        return NodeStart(
            heard_us=own["wall_us"],
            published_us=own["published_us"],
            marks={name: at - own["steady_us"] for name, at in steady.items()},
            warm=shim.get("forked"),
            cold_reason=own["cold_reason"] or ranks.get(COLD),
            cold_code=own.get("cold_code") if own["cold_reason"] else ranks.get(COLD_CODE),
            cold_said=own.get("cold_said") if own["cold_reason"] else ranks.get(COLD_SAID),
            preloaded=None if COLD in ranks else own.get("preloaded"),
        )

    def _rank_size(self) -> int:
        try:
            with opening.folder(self._folder.path, layout.MARKS) as at:
                return os.stat(layout.start_mark(0), dir_fd=at, follow_symlinks=False).st_size
        except OSError:
            return 0

    def _rank_marks(self) -> dict[str, str]:
        """The first value of each line's name."""
        path = f"{layout.MARKS}/{layout.start_mark(0)}"
        try:
            with opening.file_inside(self._folder.path, path, self._owner) as descriptor:
                text = os.pread(descriptor, MAX_MARKS, 0).decode(errors="replace")
        except OSError:
            return {}
        found: dict[str, str] = {}
        for line in text.splitlines():
            name, _, value = line.partition(" ")
            found.setdefault(name, value)
        return found


def _numbers(marks: Mapping[str, str]) -> dict[str, int]:
    return {name: int(value) for name, value in marks.items() if value.isdecimal() and len(value) < 19}


def _json(path: Path) -> dict[str, Any] | None:
    try:
        return files.read_json(path)
    except (OSError, ValueError):
        return None
