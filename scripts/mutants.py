"""``python scripts/mutants.py``: plants each fault of ``faults.yaml`` in a copy and demands that its test fails.

A test that passes with its fault planted proves nothing of what docs/techniques.md says; nor does one that fails in the
copy anyway, so that all of them run there first without a fault. ``--quick`` takes the quickest, ``--row 4`` those of a
row.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
FAULTS = Path(__file__).with_name("faults.yaml")
#: Longer than any of the tests; one that waits for a rank which a fault has stopped gives up before.
PATIENCE_S = 240
#: What pytest exits with when tests ran and one failed.
FAILED = 1


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A change of one file, and the test that must notice it."""

    row: str
    file: str
    old: str
    new: str
    test: str
    quick: bool = False

    def planted(self, source: str) -> str:
        """The source with the fault; raises ValueError unless there is one place for it."""
        if source.count(self.old) != 1:
            raise ValueError(f"row {self.row}: {self.old!r} occurs {source.count(self.old)} times in {self.file}")
        return source.replace(self.old, self.new)


def faults(path: Path = FAULTS) -> list[Fault]:
    """All faults, in the order of the rows."""
    return [Fault(**each) for each in yaml.safe_load(path.read_text())]


def copy(target: Path) -> None:
    """Copies what git knows or would add."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)


def outcome(fault: Fault, folder: Path) -> str:
    """``killed``, or what is wrong; the copy is as it was afterwards."""
    file = folder / fault.file
    source = file.read_text()
    file.write_text(fault.planted(source))
    try:
        run = _tested(folder, [fault.test], PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"no answer in {PATIENCE_S} s"
    finally:
        file.write_text(source)
    if run.returncode == FAILED:
        return "killed"
    return "SURVIVED" if run.returncode == 0 else f"pytest exited with {run.returncode}: {run.stdout[-300:]}"


def failing(tests: Sequence[str], folder: Path) -> str:
    """What pytest says of tests that fail in the copy without a fault; empty if all pass."""
    run = _tested(folder, tests, PATIENCE_S * len(tests))
    return run.stdout[-3000:] if run.returncode else ""


def _tested(folder: Path, tests: Sequence[str], patience_s: float) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=patience_s, check=False
    )


def tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201 (a table, as it grows)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only those whose tests take seconds")
    parser.add_argument("--row", action="append", help="only those of a row, such as 4 or c8; may be repeated")
    options = parser.parse_args(given)
    chosen = [
        each for each in faults() if (each.quick or not options.quick) and each.row in (options.row or [each.row])
    ]
    survivors, started = 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        copy(Path(name))
        if said := failing([*dict.fromkeys(fault.test for fault in chosen)], Path(name)):
            tell(f"these tests prove nothing: without a fault they fail too\n{said}")
            return 1
        for fault in chosen:
            began = time.monotonic()
            found = outcome(fault, Path(name))
            survivors += found != "killed"
            tell(f"{fault.row:>4}  {found:8}  {time.monotonic() - began:5.1f} s  {fault.file}  {fault.test}")
    minutes = (time.monotonic() - started) / 60
    tell(f"{len(chosen) - survivors} of {len(chosen)} planted faults were noticed in {minutes:.1f} min")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
