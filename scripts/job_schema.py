"""Writes docs/job-spec.schema.json, the JSON Schema of a job spec; `--check` only compares."""

import json
import sys
from pathlib import Path

from torchyard import spec

PAGE = Path(__file__).parents[1] / "docs" / "job-spec.schema.json"


def render() -> str:
    """The schema as text, in the models' own order."""
    return json.dumps(spec.json_schema(), indent=2) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(
            PAGE.read_text() != render() and "docs/job-spec.schema.json is stale: run python scripts/job_schema.py"
        )
    PAGE.write_text(render())
