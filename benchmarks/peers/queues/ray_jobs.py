"""Ray Jobs on a head of two CPUs: through its SDK, and through ``ray job submit``."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from benchmarks.peers import install, polling
from benchmarks.peers.bridge import Bridge, bridge
from benchmarks.peers.interface import Client, Peer
from benchmarks.peers.processes import Processes, free_port, started

VERSION = "2.60.0"


class CommandLine:
    """A process of ``ray`` for each submission; the SDK waits."""

    def __init__(self, processes: Processes, programs: Path, address: str, sdk: Bridge) -> None:
        self._processes, self._sdk = processes, sdk
        self._submit = [str(programs / "ray"), "job", "submit", "--address", address, "--no-wait"]
        self._count = 0

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        self._count += 1
        name = f"bench-{self._count}"
        words = ["--submission-id", name, "--entrypoint-num-cpus", str(slots), "--", *command]
        self._processes.run([*self._submit, *words])
        return name

    def wait(self, job: str) -> None:
        self._sdk.wait(job)


def _programs() -> Path:
    return install.environment("ray", f"ray[default]=={VERSION}")


def _installed() -> str:
    _programs()
    return VERSION


@contextmanager
def _head(folder: Path) -> Iterator[tuple[Processes, str, Bridge]]:
    port, dashboard = free_port(), free_port()
    with started(folder, RAY_USAGE_STATS_ENABLED="0", RAY_raylet_start_wait_time_s="60") as processes:
        words = ["start", "--head", "--block", "--num-cpus", "2", "--port", str(port), "--include-dashboard", "true"]
        places = ["--dashboard-port", str(dashboard), "--temp-dir", str(folder / "ray")]
        processes.daemon([str(_programs() / "ray"), *words, *places])
        address = f"http://127.0.0.1:{dashboard}"
        polling.until_up(lambda: urlopen(f"{address}/api/version", timeout=5).status == 200)
        with bridge(processes, _programs() / "python", "ray_client", address) as sdk:
            yield processes, address, sdk


@contextmanager
def _sdk(folder: Path) -> Iterator[Client]:
    with _head(folder) as (_, _, sdk):
        yield sdk


@contextmanager
def _command_line(folder: Path) -> Iterator[Client]:
    with _head(folder) as (processes, address, sdk):
        yield CommandLine(processes, _programs(), address, sdk)


PEERS = (
    Peer(name="Ray Jobs (SDK)", install=_installed, start=_sdk),
    Peer(name="Ray Jobs (ray job submit)", install=_installed, start=_command_line),
)
