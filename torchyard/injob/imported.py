"""Names of the installed modules that rank 0 has imported, by which the node learns what to load for jobs to come.

Never the user's own: only what lies in the interpreter's site-packages.
"""

from __future__ import annotations

import atexit
import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from typing import Any

from torchyard.injob import layout, place, start

#: Names of either kind that are told, and characters of one.
MAX_NAMES, MAX_LENGTH = 4000, 120
#: Packages that are loaded without being learnt, and ours.
_KNOWN = frozenset({"torch", "numpy", "torchyard", "torchyard_entry_points"})


def note_at_exit() -> None:
    """Note the modules when this process ends; nothing of a process that is killed."""
    atexit.unregister(note)  # once, however often it is asked for
    atexit.register(note)


def note() -> None:
    """Write the names to a file: nothing on other ranks than 0, and never an error."""
    attempt = place.current()
    if attempt is None or os.environ.get("RANK", "0") != "0" or start.is_agent():
        return
    try:
        text = "".join("%s\n" % name for name in installed(dict(sys.modules), site_packages()))
        text += "".join("own %s\n" % name for name in own_names(sys.path[0]))
        path = os.path.join(attempt.path(layout.MARKS), layout.imported_mark(0))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except Exception:  # noqa: BLE001 (whatever lies in `sys.modules` and `sys.path`)
        return


def site_packages() -> tuple[str, ...]:
    """Return the folders of this interpreter's installed packages."""
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    found = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages(), *user]
    return tuple({os.path.join(folder, "") for folder in found})


def installed(modules: Mapping[str, Any], folders: tuple[str, ...]) -> list[str]:
    """Return the names of modules whose file lies in the folders, in order of import; none of a package that is
    partly elsewhere.
    """
    found = []
    elsewhere = set()
    for name, module in modules.items():
        # Not by `getattr`: what loads itself when it is asked for anything must not.
        told = getattr(module, "__dict__", {})
        file = told.get("__file__")
        top = name.partition(".")[0]
        if not isinstance(file, str) or top in _KNOWN:
            continue
        if not file.startswith(folders):
            elsewhere.add(top)
        elif _is_name(name) and told.get("__name__") == name:
            found.append(name)
    return [name for name in found if name.partition(".")[0] not in elsewhere][:MAX_NAMES]


def own_names(folder: str) -> list[str]:
    """Return the names of modules in the program's folder: an installed one of such a name is not the program's."""
    return sorted({name for name in _tops(os.listdir(folder or ".")) if _is_name(name)})[:MAX_NAMES]


def _tops(entries: Iterable[str]) -> Iterable[str]:
    return (entry.partition(".")[0] for entry in entries)


def _is_name(name: str) -> bool:
    return len(name) <= MAX_LENGTH and name.isascii() and all(part.isidentifier() for part in name.split("."))
