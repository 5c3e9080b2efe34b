"""Writes docs/compatibility.md from what tests/compat proves; `--check` only compares.

A cell says yes if a test is marked ``@pytest.mark.proves("row", "column", …)``, on the test or on one of its
parameters (``marks=pytest.mark.proves(…)``): all of them run with `make test`. A new script or tool is a new entry of
`ROWS` and a marked test.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts import generated

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
TESTS = ROOT / "tests" / "compat"
COLUMNS = ("starts", "metrics", "outputs", "clean stop", "exact resume", "live", "preempted")
#: A cell of a column that has no meaning for the row.
NONE = "-"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A script or tool that runs without a changed line."""

    title: str
    package: str
    """Its version is that of ``tests/compat/constraints.txt``."""
    script: str | None = None
    """Path of an example that the tests run."""
    notes: Mapping[str, str]
    """By column: words in place of what no test proves."""


def row(title: str, package: str, script: str | None = None, **notes: str) -> Row:
    """A row; a keyword names a column, with ``_`` for a space."""
    return Row(
        title=title,
        package=package,
        script=script,
        notes={name.replace("_", " "): words for name, words in notes.items()},
    )


ROWS: Mapping[str, Row] = {
    "lightning-torchrun": row(
        "Lightning Trainer under torchrun", "lightning", "examples/frameworks/lightning_trainer.py"
    ),
    "lightning-python": row(
        "Lightning Trainer that starts its own processes (launcher python)",
        "lightning",
        "examples/frameworks/lightning_trainer.py",
    ),
    "lightning-none": row(
        "Lightning Trainer as a plain program (launcher none)", "lightning", "examples/frameworks/lightning_trainer.py"
    ),
    "pytorch-lightning": row(
        "the same as `pytorch_lightning`, with strategy `ddp_spawn`",
        "lightning",
        "examples/frameworks/lightning_trainer.py",
    ),
    "transformers": row("Trainer of transformers", "transformers", "examples/frameworks/huggingface_trainer.py"),
    "accelerate": row(
        "loop with Accelerate that saves its state",
        "accelerate",
        "examples/frameworks/accelerate_loop.py",
    ),
    "hydra": row(
        "Hydra with --multirun",
        "hydra-core",
        "examples/frameworks/hydra_app.py",
        clean_stop="starts over",
        exact_resume="starts over",
    ),
    "tensorboard": row("SummaryWriter of TensorBoard", "tensorboard"),
    "mlflow": row("MLflow's fluent API", "mlflow"),
    "wandb": row("Weights & Biases", "wandb"),
    "trackio": row("Trackio", "trackio"),
    "ddp": row(
        "DistributedDataParallel script that keeps `snapshot.pt`",
        "torch",
        "examples/frameworks/ddp_snapshot.py",
        clean_stop="its last snapshot",
    ),
    "spawn": row(
        "the same by `mp.spawn` at a port of its own",
        "torch",
        "tests/compat/scripts/spawn_snapshot.py",
        clean_stop="its last snapshot",
    ),
    "accelerate-launch": row(
        "`accelerate launch` typed after `yard run --`",
        "accelerate",
        "examples/frameworks/accelerate_loop.py",
    ),
}


def proofs(tests: Path = TESTS) -> dict[str, set[str]]:
    """The columns that tests prove, by row; raises ValueError for a row or a column that is not known."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(tests.glob("test_*.py")):
        for name, *columns in _marks(ast.parse(path.read_text()), path.name):
            strange = {name} - ROWS.keys() | set(columns) - set(COLUMNS)
            if strange:
                raise ValueError(f"{path.name}: proves() names {sorted(strange)}, see ROWS and COLUMNS")
            found[name] |= set(columns)
    return found


def _marks(tree: ast.AST, file: str) -> Iterator[list[str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "proves":
            words = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            if len(words) != len(node.args) or not all(isinstance(word, str) for word in words):
                raise ValueError(f"{file}:{node.lineno}: proves() takes words, since they are read without a run")
            yield [str(word) for word in words]


def versions(constraints: Path = TESTS / "constraints.txt") -> dict[str, str]:
    """The tested version of each package."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", constraints.read_text(), re.MULTILINE))


def table() -> str:
    """The rows as Markdown."""
    proven, known = proofs(), versions()
    lines = [f"| script or tool | version | lines changed | {' | '.join(COLUMNS)} |", "|---" * (3 + len(COLUMNS)) + "|"]
    for name, entry in ROWS.items():
        title = entry.title if entry.script is None else f"[{entry.title}](../{entry.script})"
        cells = ["yes" if column in proven[name] else entry.notes.get(column, NONE) for column in COLUMNS]
        lines.append(f"| {title} | {entry.package} {known[entry.package]} | 0 | {' | '.join(cells)} |")
    return "\n".join(lines)


def render(page: str) -> str:
    """The page with its table made anew."""
    return generated.between(page, "table", table())


if __name__ == "__main__":
    generated.write_or_check(PAGE, render(PAGE.read_text()), "compatibility")
