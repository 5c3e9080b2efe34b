"""The result as one HTML file without anything beside it: it can be opened, mailed and kept."""

from collections.abc import Iterable, Sequence
from html import escape
from string import Template

from trainer.bench import published
from trainer.bench.table import CAVEAT, HEADINGS, ComparisonRow

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff; margin: 2rem auto; max-width: 72rem;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .35rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid #d8dee4; }
th { font-weight: 600; color: #57606a; border-bottom-color: #8c959f; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.flagged td { background: #fff1f0; } .flagged td:last-child { color: #b42318; font-weight: 600; }
.note { background: #fff8e1; border-left: 4px solid #d29922; padding: .6rem 1rem; }
.warning { background: #fff1f0; border-left: 4px solid #b42318; padding: .6rem 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.5rem; } dt { color: #57606a; }
dd { margin: 0; }
figure { margin: 1.5rem 0; } svg { width: 100%; height: auto; }
</style>
</head>
<body>
<h1>$title</h1>
$note
$warning
<h2>Measured on this machine</h2>
<div class="scroll">$ours</div>
<figure>$svg</figure>
<h2>How it was measured</h2>
<dl>$facts</dl>
<h2>Published by others</h2>
<p>As their authors give them, on their hardware. None of it was measured here.</p>
<div class="scroll">$theirs</div>
</body>
</html>
""")


def render(title: str, note: str, facts: Sequence[tuple[str, str]], rows: Sequence[ComparisonRow], svg: str) -> str:
    """The page; `svg` is an SVG file's text."""
    flagged = any(not row.credible for row in rows)
    return _PAGE.substitute(
        title=escape(title),
        note=f'<p class="note">{escape(note)}</p>' if note else "",
        warning=f'<p class="warning">{escape(CAVEAT[0].upper() + CAVEAT[1:])}.</p>' if flagged else "",
        ours=_ours(rows),
        svg=svg[svg.index("<svg") :],
        facts="".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts),
        theirs=_theirs(),
    )


def _ours(rows: Sequence[ComparisonRow]) -> str:
    return _table(HEADINGS, [(row.cells, row.credible) for row in rows], words=frozenset({0, len(HEADINGS) - 1}))


def _theirs() -> str:
    rows = [(each.cells, each.credible) for each in published.PUBLISHED]
    return _table(published.HEADINGS, rows, words=frozenset({0, 1, 2, len(published.HEADINGS) - 1}))


def _table(headings: Sequence[str], rows: Iterable[tuple[Sequence[str], bool]], words: frozenset[int]) -> str:
    """A table with numbers in all columns but those of `words`; rows that are not credible stand out."""
    head = _row("th", headings, words)
    lines = "".join(_row("td", cells, words, flagged=not credible) for cells, credible in rows)
    return f"<table><thead>{head}</thead><tbody>{lines}</tbody></table>"


def _row(tag: str, cells: Sequence[str], words: frozenset[int], *, flagged: bool = False) -> str:
    number, kind = ' class="number"', ' class="flagged"' if flagged else ""
    inner = (f"<{tag}{'' if at in words else number}>{escape(text)}</{tag}>" for at, text in enumerate(cells))
    return f"<tr{kind}>{''.join(inner)}</tr>"
