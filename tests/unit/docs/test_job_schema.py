"""The exported JSON Schema of a job spec is that of the code, and it accepts the examples."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs" / "job-spec.schema.json").read_text())
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))


def test_the_exported_schema_is_that_of_the_code() -> None:
    subprocess.run([sys.executable, "-m", "scripts.job_schema", "--check"], check=True, cwd=ROOT)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT / "examples")))
def test_the_schema_accepts_the_examples(example: Path) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(yaml.safe_load(example.read_text()))


def test_the_schema_refuses_what_the_spec_refuses() -> None:
    with pytest.raises(jsonschema.ValidationError, match="gpuz"):
        jsonschema.Draft202012Validator(SCHEMA).validate({"command": ["a"], "resources": {"gpuz": 1}})
