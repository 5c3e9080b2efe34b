"""Writes docs/job-spec.schema.json, the JSON Schema of a job spec; `--check` only compares."""

import json
from pathlib import Path

from scripts import generated
from torchyard import spec

PAGE = Path(__file__).parents[1] / "docs" / "job-spec.schema.json"


def render() -> str:
    """The schema as text, in the models' own order."""
    return json.dumps(spec.json_schema(), indent=2) + "\n"


if __name__ == "__main__":
    generated.write_or_check(PAGE, render(), "job_schema")
