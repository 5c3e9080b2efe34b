import math
from pathlib import Path

from torchyard.export.events import EventFile
from torchyard.export.mirror import Mirror
from torchyard.export.rows import ExportedPoint
from worker.trackers import tensorboard
from worker.trackers.points import Chunk


def scalars(folder: Path) -> list[tuple[str, int, int, float]]:
    """What the only event file of a folder holds, by the node's own reader."""
    (path,) = (path for path in folder.iterdir() if path.is_file())
    data = path.read_bytes()
    found = tensorboard.read(Chunk(data=data, at=0, size=len(data)), 1000)
    assert (found.end, found.skipped) == (len(data), 0)
    return [(tag, each.step, each.time_us, value) for each in found.points for tag, value in each.values.items()]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    points = [("train/loss", 3, 1.5, 0.25), ("train/loss", -1, 2.0, -math.inf), ("é", 2**62, 0.0, math.inf)]
    with EventFile(tmp_path / "run", 1.0) as file:
        file.add(points[:1])
        file.add([*points[1:2], ("é", 2**62, 0.0, 1e300)])
        assert len(scalars(tmp_path / "run")) == 3, "a reader finds them while the file is open"
    assert scalars(tmp_path / "run") == [(tag, step, round(time * 1e6), value) for tag, step, time, value in points]


def test_each_rank_has_a_folder(tmp_path: Path) -> None:
    with Mirror(tmp_path) as mirror:
        mirror.add([ExportedPoint("loss", 0, 1, 1.0, 0.5), ExportedPoint("loss", 1, 1, 1.0, 0.25)])
    assert scalars(tmp_path) == [("loss", 1, 1_000_000, 0.5)]
    assert scalars(tmp_path / "rank-1") == [("loss", 1, 1_000_000, 0.25)]
