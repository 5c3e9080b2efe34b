"""Policy files: YAML or JSON, read so that every error names the field."""

from pathlib import Path

import yaml

from torchyard import settingsfile
from torchyard.exceptions import PolicyError
from torchyard.spec.policy import Policy


def read(path: Path) -> Policy:
    """A policy from a file; fields that are absent have their defaults. Raises PolicyError with the mend."""
    shape = "a policy is a mapping of fields, such as `half_life: 7d`"
    return settingsfile.read(path, Policy, PolicyError, shape)


def write(policy: Policy) -> str:
    """The policy as such a file."""
    return yaml.safe_dump(policy.model_dump(mode="json"), sort_keys=False)
