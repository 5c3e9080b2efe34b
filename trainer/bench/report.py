"""The result of a comparison as it is handed out: a table in the log, a CSV, pictures, and a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trainer.bench import page, plot, published, table

CSV = "strategies.csv"
#: A page that needs nothing beside it.
PAGE = "strategies.html"


@dataclass(frozen=True, kw_only=True)
class ComparisonReport:
    """Figures of a comparison, with what they were measured on."""

    title: str
    rows: Sequence[table.ComparisonRow]
    #: How it was measured: name and value.
    facts: Sequence[tuple[str, str]]
    #: The recipe's model, for what others have published of it.
    model: str
    #: What must be known of a stand-in.
    note: str = ""

    def write(self, folder: Path) -> None:
        """Write ``strategies.csv``, ``.png``, ``.svg`` and ``.html``."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CSV).write_text(table.as_csv(self.rows))
        known = [each for each in published.PUBLISHED if each.model == self.model]
        plot.draw(self.rows, known, self.title, folder)
        svg = (folder / "strategies.svg").read_text()
        (folder / PAGE).write_text(page.render(self.title, self.note, self.facts, self.rows, svg))

    def show(self) -> None:
        """Print our figures, then those that others have published."""
        ours = Table(*table.HEADINGS, title=self.title)
        for row in self.rows:
            ours.add_row(*row.cells)
        theirs = Table(*published.HEADINGS, title="Published by others, not measured here")
        for each in published.PUBLISHED:
            theirs.add_row(*each.cells)
        console = Console(width=180)
        if self.note:
            console.print(self.note)
        console.print(ours)
        console.print(theirs)
