"""NVML of a box whose cards are folders: a process that holds the file ``<folder>/<uuid>/<MiB>`` open holds so much.

`make` writes a module `pynvml` that a worker finds before the real one, so that real processes of real accounts are on
cards that the machine does not have.
"""
# ruff: noqa: N802, N803 (the library's own names)

import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.nvml import Record, RecordedNvml, Values

ROOT = Path(__file__).parents[2]
#: Sizes that a process can hold of a card, in MiB.
SIZES = (1024, 4096, 40960)


class OpenedCards(RecordedNvml):
    """The cards that lie in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(*(Record(uuid=path.name, utilization=90) for path in sorted(folder.iterdir())))
        self._folder = str(folder)

    def nvmlInit(self) -> None:
        """Nothing to do."""

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Record) -> list[Values]:
        prefix = f"{self._folder}/{handle.uuid}/"
        held = [(pid, target) for pid, target in _opened() if target.startswith(prefix)]
        return [Values(pid=pid, usedGpuMemory=int(target.removeprefix(prefix)) << 20) for pid, target in held]

    def nvmlEventSetWait_v2(self, eventSet: list[str], timeoutms: int) -> Values:
        raise self.NVMLError("Not Supported")


def _opened() -> Iterator[tuple[int, str]]:
    """What each process of the machine has open."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            for descriptor in (process / "fd").iterdir():
                with suppress(OSError):
                    yield int(process.name), str(descriptor.readlink())


@dataclass(frozen=True)
class Cards:
    """Cards that a test has made; `python_path` has a worker see them."""

    folder: Path
    uuids: tuple[str, ...]
    python_path: str

    def file(self, card: int, mib: int) -> Path:
        """The file that a process opens to hold so much of a card."""
        return self.folder / self.uuids[card] / str(mib)


def make(folder: Path, count: int) -> Cards:
    """Make so many cards, which everybody may open, and a `pynvml` that tells of them."""
    # A worker keeps a card from others by its name, machine-wide.
    uuids = sorted(f"GPU-{uuid.uuid4()}" for _ in range(count))
    cards, library = folder / "cards", folder / "library"
    for name in uuids:
        (cards / name).mkdir(parents=True)
        for size in SIZES:
            (cards / name / str(size)).touch()
    library.mkdir()
    imports = "import sys, pathlib\nfrom tests.support.opened_cards import OpenedCards\n"
    module = f"{imports}sys.modules[__name__] = OpenedCards(pathlib.Path({str(cards)!r}))\n"
    library.joinpath("pynvml.py").write_text(module)
    return Cards(cards, tuple(uuids), f"{library}:{ROOT}")
