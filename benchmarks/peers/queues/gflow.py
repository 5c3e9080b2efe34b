"""gflow (``runqd`` on PyPI): a daemon that runs each job in a tmux session."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.peers import install, polling
from benchmarks.peers.interface import Client, Peer
from benchmarks.peers.processes import Processes, free_port, started

VERSION = "0.4.18"
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
CONFIGURATION = """[daemon]
host = "127.0.0.1"
port = {port}
"""


class CommandLine:
    """``gbatch``; without devices a share of the memory is what makes two slots."""

    def __init__(self, processes: Processes, programs: Path) -> None:
        self._processes, self._programs = processes, programs
        self._share_mb = int(psutil.virtual_memory().total / 2**20 * 0.45)

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        memory = f"{self._share_mb * slots}M"
        told = self._run("gbatch", "--memory", memory, "--auto-close", "--", *command)
        return next(word for word in told.replace("(", " ").replace(")", " ").split() if word.isdecimal())

    def wait(self, job: str) -> None:
        polling.until_ended(lambda: self._state(job), good="cd")

    def up(self) -> bool:
        return self._processes.succeeds([str(self._programs / "ginfo")])

    def _state(self, job: str) -> str:
        shown = _COLOR.sub("", self._run("gqueue", "--all", "--jobs", job, "--format", "ST")).split()
        return shown[-1] if shown else ""

    def _run(self, program: str, *words: str) -> str:
        return self._processes.run([str(self._programs / program), *words])


def _programs() -> Path:
    return install.environment("gflow", f"runqd=={VERSION}")


def _installed() -> str:
    install.debian("tmux", "tmux")
    _programs()
    return VERSION


@contextmanager
def _start(folder: Path) -> Iterator[Client]:
    configuration = folder / "config" / "gflow" / "gflow.toml"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(CONFIGURATION.format(port=free_port()))
    programs = _programs()
    variables = {"HOME": str(folder), "TMUX_TMPDIR": str(folder), "TMUX": "", "XDG_DATA_HOME": str(folder / "data")}
    # Each job tells the daemon of its end by one of the programs, from a login shell.
    (folder / ".profile").write_text(f'export PATH="{programs}:$PATH"\n')
    with started(folder, XDG_CONFIG_HOME=str(folder / "config"), **variables) as processes:
        client = CommandLine(processes, programs)
        processes.run([str(programs / "gflowd"), "start"])
        polling.until_up(client.up)
        yield client


PEER = Peer(name="gflow (gbatch)", install=_installed, start=_start, setting="two slots by memory")
