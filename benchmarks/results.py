"""``benchmarks/results.json``: the latest figures of each section, with the machine that they were measured on."""

import dataclasses
import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.figure import Summary

RESULTS = Path(__file__).with_name("results.json")


def report(section: str, rows: Sequence[Summary], *, whole: bool = True, path: Path = RESULTS) -> None:
    """Print a table, and write the section where it is `whole`: parts of two machines would make no section."""
    Console(width=140).print(table(rows, section))
    if whole:
        record(section, rows, path)


def record(section: str, rows: Sequence[Summary], path: Path = RESULTS) -> None:
    """Replace a section of the file and leave the others."""
    sections = load(path)
    sections[section] = {"machine": machine(), "figures": [dataclasses.asdict(row) for row in rows]}
    save(sections, path)


def load(path: Path = RESULTS) -> dict[str, Any]:
    """Return all sections by name; none while there is no file."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


def save(sections: dict[str, Any], path: Path) -> None:
    """Write them by name, whole or not at all."""
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(sections, indent=1, sort_keys=True) + "\n")
    beside.replace(path)


def machine() -> dict[str, object]:
    """Return what figures of different machines differ by, and how busy this one is."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "python": platform.python_version(),
        "torch": _version("torch"),
        "date": datetime.now(UTC).date().isoformat(),
        "load": round(os.getloadavg()[0], 1),
    }


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def table(rows: Sequence[Summary], title: str) -> Table:
    """Return the rows as they are printed."""
    shown = Table("figure", "median", "range", "runs", "target", "met", "against the same run's", title=title)
    for row in rows:
        shown.add_row(*cells(row))
    return shown


def cells(row: Summary) -> tuple[str, ...]:
    """Return a row as the columns of the table have it."""
    ratio = f"{row.median / row.baseline:,.2f} x {row.against}" if row.baseline else ""
    verdict = {None: "", True: "yes", False: "NO"}[row.met]
    spread = f"{number(row.minimum)} to {number(row.maximum)}"
    return row.name, f"{number(row.median)} {row.unit}", spread, str(row.runs), row.target, verdict, ratio


def number(value: float) -> str:
    """Return three digits of a small number, the whole of a large one."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
