"""What a queue must do to be measured."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.peers.programs import torchrun


class NotInstalledError(Exception):
    """A queue that is not here and cannot be installed; the message is why."""


class Client(Protocol):
    """A running queue with two slots."""

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        """Hand a command in and return the job's name once the queue has accepted it."""
        ...

    def wait(self, job: str) -> None:
        """Return once the queue says that the job has ended."""
        ...


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A queue, how it is set up, and what a reader must know of that."""

    name: str
    #: Makes sure that it is installed and returns its version; raises NotInstalledError.
    install: Callable[[], str]
    #: Starts it in an empty folder with a short path; everything that it started has ended once that is left.
    start: Callable[[Path], AbstractContextManager[Client]]
    setting: str = ""


def train(client: Client, script: Path, moments: Path) -> str:
    """Submit the script with two ranks: by the client's own `train`, if that is not a command like any other."""
    own = getattr(client, "train", None)
    return str(own(script, moments) if own else client.submit(torchrun(script, moments), slots=2))
