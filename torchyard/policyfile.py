"""Policy files: YAML or JSON, read so that every error names the field."""

from pathlib import Path

import yaml
from pydantic import ValidationError

from torchyard import mistakes
from torchyard.exceptions import PolicyError
from torchyard.policy import Policy


def read(path: Path) -> Policy:
    """A policy from a file; fields that are absent have their defaults. Raises PolicyError with the mend."""
    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise PolicyError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise PolicyError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(data, dict | None):
        raise PolicyError(f"{path}: a policy is a mapping of fields, such as `half_life: 7d`")
    try:
        return Policy.model_validate(data or {})
    except ValidationError as error:
        wrong = (f"{path}: {'.'.join(map(str, e['loc']))}: {mistakes.message(e, Policy)}" for e in error.errors())
        raise PolicyError("\n".join(wrong)) from error


def write(policy: Policy) -> str:
    """The policy as such a file."""
    return yaml.safe_dump(policy.model_dump(mode="json"), sort_keys=False)
