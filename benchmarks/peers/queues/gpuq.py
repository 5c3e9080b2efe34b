"""gpuq (``gpuqu`` on PyPI): one device, one job; it looks at its queue at fixed intervals, two seconds by default."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.peers import install, polling
from benchmarks.peers.interface import Client, Peer
from benchmarks.peers.processes import Processes, free_port, started

VERSION = "0.1.3"
#: It starts nothing without devices: a stand-in for ``nvidia-smi`` shows two, with the fifteen fields that it asks for.
DEVICES = """#!/bin/sh
for index in 0 1; do echo "$index, stand-in, GPU-$index, 0, 0, 0, 81920, 30, 60, 400, 400, 100, 1500, 1500, 4"; done
"""
#: As short as it is used to: a scheduling pass starts that program, and one job at the most.
INTERVAL = "0.1"


class Server:
    """Its REST API, a connection for each request, which is what its own client does."""

    def __init__(self, url: str) -> None:
        self._url = url

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        del slots  # every job has one device; two ranks then run beside a free one
        return str(self._ask("/api/tasks", {"command": list(command)})["id"])

    def wait(self, job: str) -> None:
        polling.until_ended(lambda: str(self._ask(f"/api/tasks/{job}")["status"]), good="succeeded")

    def up(self) -> bool:
        return bool(self._ask("/api/system"))

    def _ask(self, path: str, body: object = None) -> dict[str, object]:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._url + path, data=data, headers={"Content-Type": "application/json"})
        with urlopen(request, timeout=30) as answer:
            return dict(json.load(answer)["data"])


class CommandLine(Server):
    """Submissions through ``gpuq submit``."""

    def __init__(self, url: str, processes: Processes, program: str) -> None:
        super().__init__(url)
        self._processes, self._program = processes, program

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        del slots
        return self._processes.run([self._program, "submit", "--", *command]).split()[2]


def _program() -> str:
    return str(install.environment("gpuq", f"gpuqu=={VERSION}") / "gpuq")


def _installed() -> str:
    _program()
    return VERSION


@contextmanager
def _serve(folder: Path) -> Iterator[tuple[str, Processes]]:
    devices, port = folder / "devices", free_port()
    devices.write_text(DEVICES)
    devices.chmod(0o755)
    variables = {"GPUQ_PORT": str(port), "GPUQ_DATA": str(folder / "data"), "GPUQ_GPU_BIN": str(devices)}
    with started(folder, GPUQ_POLL_INTERVAL=INTERVAL, **variables) as processes:
        processes.daemon([_program(), "serve"])
        url = f"http://127.0.0.1:{port}"
        polling.until_up(Server(url).up)
        yield url, processes


@contextmanager
def _rest(folder: Path) -> Iterator[Client]:
    with _serve(folder) as (url, _):
        yield Server(url)


@contextmanager
def _command_line(folder: Path) -> Iterator[Client]:
    with _serve(folder) as (url, processes):
        yield CommandLine(url, processes, _program())


_SETTING = f"polls every {INTERVAL} s instead of 2 s; a stand-in for nvidia-smi"
PEERS = (
    Peer(name="gpuq (REST)", install=_installed, start=_rest, setting=_SETTING),
    Peer(name="gpuq (command line)", install=_installed, start=_command_line, setting=_SETTING),
)
