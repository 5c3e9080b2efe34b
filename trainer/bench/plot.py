"""The table as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer.bench.published import Published
from trainer.bench.table import CAVEAT, ComparisonRow

_FLAG = "#b42318"


def draw(table: Sequence[ComparisonRow], published: Sequence[Published], title: str, folder: Path) -> list[Path]:
    """Write ``strategies.png`` and ``.svg``: speed-up by devices beside the ideal, bytes sent by strategy.

    Figures that others have published of the same model are hollow; efficiency above 100 % has a red ring and its
    reason.
    """
    import matplotlib as mpl  # most of a second: only for those who draw
    from matplotlib.figure import Figure

    paths = [folder / f"strategies.{kind}" for kind in ("png", "svg")]
    with mpl.rc_context({"svg.fonttype": "none"}):  # text that can be searched and read aloud
        figure = Figure(figsize=(11, 4.6), layout="constrained")
        speed, traffic = figure.subplots(1, 2)
        _speed_up(speed, table, published)
        _traffic(traffic, table)
        figure.suptitle(title, fontsize=11)
        if any(not row.credible for row in table):
            figure.supxlabel(f"Red rings: {CAVEAT}", fontsize=8, color=_FLAG)
        for path in paths:
            figure.savefig(path, dpi=150)
    return paths


def _speed_up(axes: Any, table: Sequence[ComparisonRow], published: Sequence[Published]) -> None:
    counts = {row.devices for row in table} | {each.devices for each in published}
    axes.plot([1, max(counts)], [1, max(counts)], linestyle=":", color="grey", label="ideal")
    for name in dict.fromkeys(row.strategy for row in table if row.devices > 1):
        mine = [row for row in table if row.strategy == name]
        points = [(1, 1.0), *((row.devices, row.speed_up) for row in mine)]
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    for hardware in dict.fromkeys(each.hardware for each in published):
        points = [(each.devices, each.speed_up) for each in published if each.hardware == hardware]
        style = {"marker": "D", "linestyle": "none", "fillstyle": "none", "color": "grey"}
        axes.plot(*zip(*points, strict=True), label=f"published: ddp on {hardware}", **style)
    _flag(axes, [row for row in table if not row.credible])
    axes.set(xlabel="devices", ylabel="speed-up over one process", ylim=(0, None))
    axes.set_xticks(sorted(counts))
    axes.legend(frameon=False)


def _flag(axes: Any, rows: Sequence[ComparisonRow]) -> None:
    ring = {"marker": "o", "linestyle": "none", "markersize": 15, "fillstyle": "none", "color": _FLAG}
    for row in rows:
        axes.plot([row.devices], [row.speed_up], markeredgewidth=2, **ring)
        words = f"{row.strategy}: {row.efficiency:.0%}"
        place = {"xytext": (-12, 0), "textcoords": "offset points", "ha": "right", "va": "center"}
        axes.annotate(words, (row.devices, row.speed_up), color=_FLAG, fontsize=9, **place)


def _traffic(axes: Any, table: Sequence[ComparisonRow]) -> None:
    most = max(row.devices for row in table)
    mine = [row for row in table if row.devices == most and row.bytes_per_rank]
    axes.barh([row.strategy for row in mine], [row.bytes_per_rank / 2**20 for row in mine], height=0.5)
    axes.set(xlabel=f"MiB sent per step by the busiest of {most} ranks")
    if not mine:
        axes.set_axis_off()
