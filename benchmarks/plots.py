"""``python -m benchmarks.plots``: pictures for docs/benchmarks.md from ``results.json`` and ``peers.json``."""

import io
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import NullLocator

from benchmarks import results
from benchmarks.figure import Summary
from benchmarks.peers import outcome

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- peers: make bench-peers writes this -->", "<!-- end of peers -->"
TARGETS_BEGIN, TARGETS_END = "<!-- targets: make bench writes this -->", "<!-- end of targets -->"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
OURS, THEIRS, MISSED = "#2563eb", "#94a3b8", "#b42318"
#: The same input gives the same bytes; text stays text, which is smaller and can be searched.
SETTINGS: Any = {
    "svg.hashsalt": "benchmarks",
    "svg.fonttype": "none",
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
}
_TARGET = re.compile(r"([<>])=?\s*([\d.,]+)\s*(x?)")


def margin(figure: dict[str, Any]) -> float | None:
    """Return how many times a figure is better than its target; None where it has none or is not above zero."""
    parsed = _TARGET.fullmatch(figure["target"])
    if parsed is None or figure["median"] <= 0:
        return None
    limit = float(parsed[2].replace(",", "")) * (figure["baseline"] if parsed[3] else 1)
    better: float = limit / figure["median"]
    return better if parsed[1] == "<" else 1 / better


def draw_targets(sections: dict[str, Any], path: Path) -> None:
    """Write a bar for each figure with a target; to the right of 1 it is met."""
    figures = [figure for section in sections.values() for figure in section["figures"]]
    bars = [(figure["name"], found) for figure in figures if (found := margin(figure)) is not None]
    with mpl.rc_context(SETTINGS):
        picture = Picture(figsize=(8, 0.6 + 0.24 * len(bars)), layout="constrained")
        axes = picture.subplots()
        colors = [OURS if value >= 1 else MISSED for _, value in bars]
        axes.barh([name for name, _ in bars], [value - 1 for _, value in bars], left=1, color=colors, height=0.6)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlabel("times better than the target")
        _save(picture, path)


def draw_peers(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write a panel for each column of the table of peers, on a logarithmic scale, a bar for each queue."""
    with mpl.rc_context(SETTINGS):
        picture = Picture(figsize=(9, 0.9 + 0.5 * len(rows)), layout="constrained")
        for axes, column in zip(picture.subplots(2, 2).flat, outcome.COLUMNS, strict=True):
            _panel(axes, rows, column)
        _save(picture, path)


def _panel(axes: Any, rows: Sequence[dict[str, Any]], column: outcome.Column) -> None:
    found = [(row["name"], value) for row in rows if (value := row.get(column.key)) is not None]
    found.sort(key=lambda each: each[1], reverse=column.more)
    colors = [OURS if name.startswith(outcome.OURS) else THEIRS for name, _ in found]
    bars = axes.barh([name for name, _ in found], [value for _, value in found], color=colors, height=0.65)
    axes.bar_label(bars, [f" {results.number(value)}" for _, value in found], fontsize=7)
    axes.set_title(f"{column.title}, {column.unit}", fontsize=9)
    axes.set_xscale("log")
    axes.tick_params(labelsize=7, length=0)
    axes.invert_yaxis()
    if found:
        values = [value for _, value in found]
        axes.set_xlim(10 ** math.floor(math.log10(min(values))), max(values) * 4)
    # Each bar has its number: ticks of a logarithmic scale would be most of the file.
    axes.xaxis.set_major_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())


#: What matplotlib writes and no reader sees: turns by nothing, groups, indentation, parts of a point, a font each time.
_UNSEEN = (
    (r' transform="rotate\(-0 [^"]*"', ""),
    (r'<g id="[^"]*"', "<g"),
    (r"(?m)^ +", ""),
    (r"(?s)<metadata>.*</metadata>\n", ""),
    (r"<g/>\n", ""),
    (r"(\d)\.\d{6}", r"\1"),
    (r"font-family: 'DejaVu Sans'(; )?", ""),
    ("<svg ", '<svg font-family="DejaVu Sans, sans-serif" '),
)


def _save(picture: Picture, path: Path) -> None:
    drawn = io.StringIO()
    picture.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    text = drawn.getvalue()
    for pattern, instead in _UNSEEN:
        text = re.sub(pattern, instead, text)
    path.write_text(text)


def with_table(page: str, peers: dict[str, Any]) -> str:
    """Return the page with a table of the peers in the place of the one before."""
    machine = peers["machine"]
    about = "{cpu}, {cores} cores, {memory_gb} GB of memory, Python {python}, torch {torch}, {date}".format_map(machine)
    loads = f"programs that ran or waited besides: {peers['load'][0]:g} to {peers['load'][1]:g}"
    words = f"{about};\n{loads}; rounds: {peers['rounds']}. In brackets: times {outcome.REFERENCE}."
    return _between(page, BEGIN, END, f"{words}\n\n{outcome.markdown(peers['rows'])}")


def with_figures(page: str, sections: dict[str, Any]) -> str:
    """Return the page with the picture of the targets and a table for each section."""
    picture = "![How far figures are from targets](images/benchmark-targets.svg)\n"
    tables = (f"\n### {name.capitalize()}\n\n{_section(each)}" for name, each in sections.items())
    return _between(page, TARGETS_BEGIN, TARGETS_END, picture + "".join(tables))


def _section(section: dict[str, Any]) -> str:
    """Return the machine and a row for each figure."""
    about = "{cpu}, {cores} cores, {memory_gb} GB of memory, Python {python}, torch {torch}, {date}, load {load:g}"
    head = (
        "| figure | median | range | runs | target | met | against, in the same run |\n|---|---|---|---|---|---|---|\n"
    )
    rows = (results.cells(Summary(**figure)) for figure in section["figures"])
    lines = ("|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|\n" for row in rows)
    return f"{about.format_map(section['machine'])}\n\n{head}{''.join(lines)}"


def _between(page: str, begin: str, end: str, text: str) -> str:
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{text}{end}{after}"


def main() -> None:
    """Draws what there is, and puts the table of peers into the docs."""
    sections, peers = results.load(), results.load(outcome.PEERS)
    if sections:
        draw_targets(sections, IMAGES / "benchmark-targets.svg")
        PAGE.write_text(with_figures(PAGE.read_text(), sections))
    if peers:
        draw_peers(peers["rows"], IMAGES / "benchmark-peers.svg")
        PAGE.write_text(with_table(PAGE.read_text(), peers))


if __name__ == "__main__":
    main()
