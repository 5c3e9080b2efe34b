"""The wheels and sdists as a user gets them: a box from the wheels of both, and a laptop with the core alone."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from scripts import mutants
from tests.support import distributions, processes, results, stack

pytestmark = pytest.mark.e2e

SPEC = (
    "name: laptop\nlauncher: python\npython: {python}\ncommand: [python, train.py]\ncode: .\nresources: {{gpus: 0}}\n"
)
SCRIPT = """\
import os, pathlib, torchyard
for step in range(1, 4):
    torchyard.report(step=step, loss=1 / step)
pathlib.Path(os.environ["TORCHYARD_OUTPUT_DIR"], "model.txt").write_text("trained")
print("trained on the box")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make dist` builds, from a copy of the tree: sdists, and the wheels from these."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    mutants.copy(tree)
    for link in (distributions.ROOT / "box").iterdir():
        if link.is_symlink():
            (tree / "box" / link.name).unlink(missing_ok=True)
            (tree / "box" / link.name).symlink_to(link.readlink())
    dashboard = Path("service", "dashboard", "dist")
    shutil.copytree(distributions.ROOT / dashboard, tree / dashboard)
    for folder in (tree, tree / "box"):
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_the_core_has_one_name_and_the_box_the_others(built: Path) -> None:
    assert names(built, "torchyard") == {"torchyard"}
    assert names(built, "torchyard_box") == {"service", "worker", "trainer", "migrations"}


def names(built: Path, distribution: str) -> set[str]:
    """The names at the top of a wheel, without the folder of its metadata."""
    (wheel,) = built.glob(f"{distribution}-*.whl")
    with zipfile.ZipFile(wheel) as file:
        return {name.partition("/")[0] for name in file.namelist()} - {f"{wheel.name.rpartition('-py3')[0]}.dist-info"}


def test_the_dashboard_and_the_templates_travel(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("torchyard_box-*.whl"), built.glob("torchyard_box-*.tar.gz")
    with zipfile.ZipFile(wheel) as file, tarfile.open(sdist) as archive:
        carried = {*file.namelist()}
        assert carried >= {"service/dashboard/dist/index.html", "migrations/script.py.mako"}
        scripts = {name for name in carried if re.fullmatch(r"service/dashboard/dist/assets/first-.*\.js", name)}
        assert scripts
        assert carried >= {name + ending for name in scripts for ending in (".br", ".gz")}
        assert carried >= {name for each in archive.getnames() if (name := each.partition("/")[2]).endswith(".py")}
        assert not [each.name for each in archive if each.issym() or each.islnk()]


@dataclass(frozen=True)
class Machine:
    """An environment with `yard` in it, and a home folder."""

    python: Path
    home: Path

    def yard(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a person would, in the home folder."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TORCHYARD_", "VIRTUAL_ENV"))}
        env |= {"HOME": str(self.home), "TORCHYARD_HOME": str(self.home / "yard"), **environment}
        command = [self.python.with_name("yard"), *words]
        return subprocess.run(command, env=env, cwd=self.home, capture_output=True, text=True, timeout=120, check=False)


def machine(folder: Path, wheels: list[Path], *extras: str) -> Machine:
    """Make an environment of wheels, and of links to the libraries that they ask for."""
    venv, home = folder / "venv", folder / "home"
    home.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    (site,) = venv.glob("lib/python3*/site-packages")
    distributions.link(distributions.brought(*extras), site)
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        *wheels,
    ]
    subprocess.run(install, check=True)
    return Machine(python, home)


@pytest.fixture(scope="module")
def laptop(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return machine(tmp_path_factory.mktemp("laptop"), [*built.glob("torchyard-*.whl")])


@pytest.fixture(scope="module")
def box(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return machine(tmp_path_factory.mktemp("box"), [*built.glob("*.whl")], "box")


@pytest.fixture(scope="module")
def running(box: Machine) -> Iterator[stack.Stack]:
    """`yard up` of the box's own wheels."""
    yard = [str(box.python.with_name("yard"))]
    with processes.unmarked(), stack.running(box.home / "yard", yard=yard, cwd=box.home) as running:
        yield running


def test_the_core_alone_has_no_box(laptop: Machine) -> None:
    assert laptop.yard("--version").stdout == f"yard {distributions.project()['version']}\n"
    refused = laptop.yard("up")
    assert (refused.returncode, refused.stderr) == (
        2,
        "yard: `yard up` needs the box: pip install 'torchyard[box]'\n",
    )


def test_a_laptop_with_the_core_alone_trains_on_the_box(laptop: Machine, box: Machine, running: stack.Stack) -> None:
    there = {"TORCHYARD_URL": running.url, "TORCHYARD_TOKEN": (running.home / "admin.token").read_text().strip()}
    (laptop.home / "train.py").write_text(SCRIPT)
    (laptop.home / "job.yaml").write_text(SPEC.format(python=box.python))

    followed = laptop.yard("submit", "--follow", "job.yaml", **there)
    assert (followed.returncode, followed.stdout) == (0, "trained on the box\n"), followed.stderr
    assert laptop.yard("logs", "1", **there).stdout == "trained on the box\n"
    (listed,) = json.loads(laptop.yard("ls", "--json", **there).stdout)
    assert (listed["state"], listed["latest"]["loss"]) == ("succeeded", pytest.approx(1 / 3))
    results.settled(running.client, "1")
    pulled = laptop.yard("pull", "1", "--to", "pulled", **there)
    assert pulled.returncode == 0, pulled.stderr
    assert [path.read_text() for path in (laptop.home / "pulled").rglob("model.txt")] == ["trained"]


def test_the_box_shows_its_dashboard(running: stack.Stack) -> None:
    page = httpx.get(running.url, headers={"Accept": "text/html"}, follow_redirects=True, trust_env=False)
    assert page.is_success
    assert '<div id="root">' in page.text
