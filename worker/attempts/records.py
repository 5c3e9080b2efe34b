"""Files that programs write before they have got anywhere."""

from typing import Final

from pathspec import PathSpec

_RECORDS: Final = PathSpec.from_lines(
    "gitignore",
    [
        *("*.log", "*.out", "*.err", "*.txt", "*.csv", "*.json", "*.jsonl", "*.yaml", "*.yml"),
        *("*tfevents*", "wandb/", "mlruns/"),
    ],
)


def is_record(path: str) -> bool:
    """Return whether a file tells of a run, and is nothing to go on from."""
    return _RECORDS.match_file(path)
