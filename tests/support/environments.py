"""Users' own environments: a venv with what they have installed in it, and nothing of ours."""

import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: What each Python of the environment begins with: to look for garbage takes a fifth of a framework's import, and as
#: long again at the end.
NO_COLLECTION = "import atexit, gc; gc.set_threshold(1_000_000); atexit.register(gc.freeze)\n"
OURS = ("__editable__", "torchyard", "fastapi", "celery", "sqlalchemy", "pydantic", "httpx", "pip")


def with_torch(folder: Path) -> Path:
    """Makes the venv; its packages are links to those of this environment, so that nothing is downloaded."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.lower().startswith(OURS):
            (site / package.name).symlink_to(package)
    (site / "collection.pth").write_text(NO_COLLECTION)
    return folder


def only(folder: Path, environment: Path, *packages: str) -> Path:
    """Makes a venv with these packages of another and what they require, as links.

    Frameworks import whatever else they find, for which a rank waits longer than it trains.
    """
    subprocess.run([environment / "bin" / "python", "-m", "venv", "--without-pip", folder], check=True)
    (there,), (here,) = (each.glob("lib/python3*/site-packages") for each in (environment, folder))
    for found in _required(there, packages):
        for path in found.files or ():
            if path.parts[0] != "..":
                link = here / path.parts[0]
                if not link.is_symlink():
                    link.symlink_to(there / path.parts[0])
            elif path.parts[-2] == "bin":
                program = (there / path).read_text().replace(str(environment), str(folder), 1)
                (folder / "bin" / path.name).write_text(program)
                (folder / "bin" / path.name).chmod(0o755)
    (here / "collection.pth").write_text(NO_COLLECTION)
    return folder


def _required(site: Path, packages: Sequence[str]) -> list[Distribution]:
    """Installed distributions of the packages and of all that they require, extras that are asked for included."""
    installed = {canonicalize_name(each.name): each for each in distributions(path=[str(site)])}
    found: dict[tuple[str, str], Distribution] = {}
    waiting = [(canonicalize_name(name), "") for name in packages]
    while waiting:
        place = waiting.pop()
        if place in found or place[0] not in installed:
            continue
        found[place] = installed[place[0]]
        for words in found[place].requires or ():
            wanted = Requirement(words)
            if wanted.marker is None or wanted.marker.evaluate({"extra": place[1]}):
                waiting += [(canonicalize_name(wanted.name), extra) for extra in ("", *wanted.extras)]
    return list(found.values())
