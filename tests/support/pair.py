"""A worker home whose jobs are executed, beside one whose jobs are forked from a server that has loaded PyTorch."""

import textwrap
from pathlib import Path
from typing import Any

from tests.support.node import Box
from torchyard.wire import Result
from worker.attempts.folder import AttemptFolder
from worker.launching.warm import ForkServers, key_of


class Pair:
    """A worker home whose jobs are executed, and one with the same in-job folder whose jobs are forked."""

    def __init__(self, root: Path) -> None:
        self.servers = ForkServers(log=root / "forkserver.log")
        self.cold = Box(root)
        self.warm = Box(root, fork_servers=self.servers)

    def run(self, files: dict[str, str], **spec: Any) -> tuple[tuple[AttemptFolder, Result], ...]:
        """A job in both ways, and that the second was forked."""
        given: dict[str, Any] = {"files": {name: textwrap.dedent(text) for name, text in files.items()}, **spec}
        cold, first = self.cold.run(**given)
        self.make(cold)
        warm, second = self.warm.run(**given)
        return (cold, first), (warm, second)

    def make(self, like: AttemptFolder) -> None:
        key = key_of(like.read_launch() or {})
        assert key is not None
        if not self.servers.has(key):
            assert self.servers.make(key), self.servers.log.read_text()

    def start(self, files: dict[str, str | bytes], **spec: Any) -> AttemptFolder:
        folder = self.warm.assign(files=files, **spec)
        self.warm.launcher.start(folder.attempt_id)
        return folder


def forked(folder: AttemptFolder) -> bool:
    """Whether an attempt's shim was forked from a server."""
    shim = folder.read_shim()
    return shim is not None and shim.forked
