"""A job's curves as event files of TensorBoard, one folder a rank, which grow as the job does."""

import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from torchyard.export.events import EventFile
from torchyard.export.rows import ExportedPoint


class Mirror:
    """The event files of one job below a folder: rank 0 in it, others in ``rank-<n>``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[int, EventFile] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the files."""
        self._open.close()

    def add(self, rows: Iterable[ExportedPoint]) -> None:
        """Append points."""
        by_rank: defaultdict[int, list[tuple[str, int, float, float]]] = defaultdict(list)
        for row in rows:
            by_rank[row.rank].append((row.name, row.step, row.time, row.value))
        for rank, points in by_rank.items():
            self._file(rank).add(points)

    def _file(self, rank: int) -> EventFile:
        if rank not in self._files:
            place = self.folder / f"rank-{rank}" if rank else self.folder
            self._files[rank] = self._open.enter_context(EventFile(place, time.time()))
        return self._files[rank]
