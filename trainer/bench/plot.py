"""The table as a picture."""

from collections.abc import Sequence
from pathlib import Path

from trainer.bench.table import Row


def draw(table: Sequence[Row], title: str, folder: Path) -> list[Path]:
    """Writes ``strategies.png`` and ``.svg``: speed-up by devices beside the ideal, bytes sent by strategy."""
    from matplotlib.figure import Figure  # most of a second: only for those who draw

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    speed, traffic = figure.subplots(1, 2)
    _speed_up(speed, table)
    _traffic(traffic, table)
    figure.suptitle(title)
    paths = [folder / f"strategies.{kind}" for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths


def _speed_up(axes: object, table: Sequence[Row]) -> None:
    most = max(row.devices for row in table)
    axes.plot([1, most], [1, most], linestyle=":", color="grey", label="ideal")  # type: ignore[attr-defined]
    for name in dict.fromkeys(row.strategy for row in table if row.devices > 1):
        mine = [row for row in table if row.strategy == name]
        points = [(1, 1.0), *((row.devices, row.speed_up) for row in mine)]
        axes.plot(*zip(*points, strict=True), marker="o", label=name)  # type: ignore[attr-defined]
    axes.set(xlabel="devices", ylabel="speed-up over one process", ylim=(0, None))  # type: ignore[attr-defined]
    axes.set_xticks(sorted({row.devices for row in table}))  # type: ignore[attr-defined]
    axes.legend(frameon=False)  # type: ignore[attr-defined]


def _traffic(axes: object, table: Sequence[Row]) -> None:
    most = max(row.devices for row in table)
    mine = [row for row in table if row.devices == most and row.bytes_per_rank]
    axes.barh([row.strategy for row in mine], [row.bytes_per_rank / 2**20 for row in mine])  # type: ignore[attr-defined]
    axes.set(xlabel=f"MiB sent per step by the busiest of {most} ranks")  # type: ignore[attr-defined]
