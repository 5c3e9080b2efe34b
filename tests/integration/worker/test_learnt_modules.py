"""What a job has imported from site-packages is loaded in the server that the next one is forked from."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.node import Box, log
from torchyard.wire import Result
from worker.attempts.folder import AttemptFolder
from worker.attempts.starts import StartReader
from worker.launching.learnt import SHADOWED, ImportReport, LearntModules
from worker.launching.warm import ForkServers, ServerKey, key_of

#: Packages of the environment; each notes the process that imports it.
NOTE = "import os, pathlib\nwith open({notes!r}, 'a') as file: print(os.getpid(), __name__, file=file)\n"
PACKAGES = {
    "tidy/__init__.py": "LEVEL = os.environ.get('TIDY_LEVEL', 'low')",
    "tidy/later.py": "",
    "threaded.py": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
    "polling.py": "import select\nkept = select.epoll()",
    "spawning.py": "import subprocess\nkept = subprocess.Popen(['sleep', '600'])",
    "setting.py": "os.environ['TIDY_MODE'] = 'set'",
    "ranked.py": "RANK = os.environ.get('RANK')",
    "leaving.py": "if os.environ.get('TIDY_LEAVES', 'yes') == 'yes' and not os.environ.get('RANK'): os._exit(3)",
    "forking.py": "os.register_at_fork(after_in_child=lambda: os._exit(4))",
    "crooked.py": "import torch\nos.register_at_fork(after_in_child=lambda: setattr(torch, 'ones', torch.zeros))",
    "shadowed.py": "",
}
WHY = {
    "threaded": "it starts threads",
    "polling": "it keeps anon_inode:[eventpoll] open",
    "spawning": "it starts processes",
    "setting": "it changes variables of the environment",
    "ranked": "it looks at RANK, which each attempt has its own of",
    "shadowed": SHADOWED,
    "leaving": "its import ends the process (status 768)",
    "forking": "a process that is forked after its import ends (status 1024)",
}
PROGRAM = """
import os, sys
print("ahead", sorted({name for name in NAMES if name in sys.modules}), file=open("ahead", "w"))
import torch
import mine
import tidy.later, threaded, polling, setting, ranked
print(mine.VALUE, tidy.LEVEL, os.environ["TIDY_MODE"], ranked.RANK, torch.ones(3).sum().item())
""".replace("NAMES", repr([*WHY, "tidy", "tidy.later", "mine"]))


class Environment:
    """An interpreter of a user's with packages, and a worker home with fork servers and what they have learnt."""

    def __init__(self, root: Path) -> None:
        self.notes = root / "notes"
        self.python = self._venv(root / "venv")
        self.servers = ForkServers(log=root / "forkserver.log", learnt=LearntModules(path=root / "learnt.json"))
        self.cold = Box(root)
        self.warm = Box(root, fork_servers=self.servers)

    def _venv(self, folder: Path) -> Path:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        (site,) = folder.glob("lib/python3*/site-packages")
        ours = [path for path in sys.path if path.endswith("-packages")]
        (site / "tests.pth").write_text("\n".join(ours))
        for path, code in PACKAGES.items():
            (site / path).parent.mkdir(exist_ok=True)
            (site / path).write_text(NOTE.format(notes=str(self.notes)) + code)
        return folder / "bin" / "python"

    def run(self, box: Box, program: str = PROGRAM, **more: Any) -> tuple[AttemptFolder, Result]:
        given: dict[str, Any] = {"launcher": "python", "command": ["python", "train.py"], "python": str(self.python)}
        return box.run(files={"train.py": program, "mine.py": "VALUE = 7\n"}, **given, **more)

    def importers(self, name: str) -> list[int]:
        """The processes that have imported a package."""
        words = [line.split() for line in self.notes.read_text().splitlines()]
        return [int(pid) for pid, module in words if module == name]


@pytest.fixture(scope="module")
def environment(patience: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    made = Environment(tmp_path_factory.mktemp("learnt"))
    yield made
    made.servers.close()


@pytest.fixture(scope="module")
def taught(environment: Environment) -> tuple[AttemptFolder, ServerKey]:
    """A cold job that has imported all, and the environment whose server has loaded what could be."""
    folder, _ = environment.run(environment.cold)
    record = folder.read_launch() or {}
    key = key_of(record)
    assert key is not None
    environment.servers.learn(record, folder, os.getuid())
    more = ["spawning", "leaving", "forking", "shadowed"]  # that no test's job had better import itself
    environment.servers.learnt.take(key.digest, told(*more, own=["shadowed"]))
    assert environment.servers.make(key), environment.servers.log.read_text()
    return folder, key


def told(*names: str, own: Sequence[str] = ()) -> ImportReport:
    return ImportReport(installed=names, own=frozenset(own))


def test_what_a_job_has_imported_is_loaded_ahead_for_the_next(
    environment: Environment, taught: tuple[AttemptFolder, ServerKey]
) -> None:
    cold, key = taught
    warm, result = environment.run(environment.warm)
    assert result.exit_code == 0, log(warm)
    assert log(warm) == log(cold)
    assert read(cold, "ahead") == "ahead []"
    assert read(warm, "ahead") == "ahead ['tidy', 'tidy.later']"
    shim = warm.read_shim()
    assert shim is not None
    assert shim.forked
    start = StartReader(warm, owner=os.getuid()).read()
    assert start is not None
    assert start.preloaded is not None
    assert start.preloaded.packages == ["tidy"]
    assert start.preloaded.modules >= 2
    server = environment.servers._servers[key].process.pid
    for name in ("tidy", "tidy.later"):
        cold_job, trial, loaded = environment.importers(name)
        assert loaded == server
        assert len({cold_job, trial, loaded}) == 3


def test_what_leaves_anything_is_struck_off_with_the_reason(
    environment: Environment, taught: tuple[AttemptFolder, ServerKey]
) -> None:
    _, key = taught
    assert {name: why for name, why in environment.servers.learnt.struck(key.digest).items() if name in WHY} == WHY
    again = LearntModules(path=environment.servers.learnt.path)
    assert again.wanted(key.digest) == environment.servers.learnt.wanted(key.digest)
    assert {"tidy", "tidy.later"} <= set(again.wanted(key.digest))
    assert "mine" not in again.wanted(key.digest)


def test_a_program_that_sets_what_a_module_has_read_is_executed(
    environment: Environment, taught: tuple[AttemptFolder, ServerKey]
) -> None:
    program = "import os\nos.environ['TIDY_LEVEL'] = 'high'\nimport torch, tidy\nprint(tidy.LEVEL)\n"
    folder, _ = environment.run(environment.warm, program)
    assert log(folder) == "high\n"
    start = StartReader(folder, owner=os.getuid()).read()
    assert start is not None
    assert "it may set TIDY_LEVEL, which a module reads" in (start.cold_reason or "")
    assert start.preloaded is None


def test_modules_that_lie_elsewhere_than_in_site_packages_are_not_loaded(
    environment: Environment, taught: tuple[AttemptFolder, ServerKey], tmp_path: Path
) -> None:
    folder, _ = taught
    (tmp_path / "editable.py").write_text("raise SystemExit('imported')")
    record = folder.read_launch() or {}
    key = key_of({**record, "env": {**record["env"], "PYTHONPATH": str(tmp_path)}})
    assert key is not None
    environment.servers.learnt.take(key.digest, told("editable", "nothing.there"))
    assert environment.servers.make(key)
    struck = environment.servers.learnt.struck(key.digest)
    assert struck == {"editable": "it is not from site-packages", "nothing.there": "it is not installed"}


def test_what_breaks_forked_children_alone_is_struck_off_and_jobs_start_warm_without_it(
    environment: Environment, taught: tuple[AttemptFolder, ServerKey]
) -> None:
    folder, _ = taught
    record = folder.read_launch() or {}
    key = key_of({**record, "env": {**record["env"], "TIDY_LEVEL": "crooked"}})
    assert key is not None
    environment.servers.learnt.take(key.digest, told("tidy", "crooked"))
    assert environment.servers.make(key)
    why = environment.servers.learnt.struck(key.digest)["crooked"]
    assert "a forked child cannot compute with torch (status 256)" in why
    assert environment.servers._servers[key].learnt == frozenset()
    program = "import sys, torch\nprint('crooked' in sys.modules, torch.ones(3).sum().item())\n"
    warm, _ = environment.run(environment.warm, program, env={"TIDY_LEVEL": "crooked"})
    assert log(warm) == "False 3.0\n"
    shim = warm.read_shim()
    assert shim is not None
    assert shim.forked


def read(folder: AttemptFolder, name: str) -> str:
    return (folder.at("job/code") / name).read_text().strip()
