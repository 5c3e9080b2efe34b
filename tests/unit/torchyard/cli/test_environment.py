"""What `show --environment` prints."""

import pytest

from torchyard.api import JobEnvironment
from torchyard.cli import environment
from torchyard.wire import Environment


def test_packages_stand_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    packages = {"numpy": "2.1", "own": "", "torchvision": "0.24"}
    found = Environment(
        interpreter="/v/bin/python", python="3.11.9", packages=packages, left_out=2, error="x is closed"
    )
    environment.put(JobEnvironment(attempt=3, environment=found))
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "attempt 3  Python 3.11.9  /v/bin/python",
        "  numpy        2.1",
        "  own          version unknown",
        "  torchvision  0.24",
    ]
    assert said.err.splitlines() == ["2 more packages are left out", "x is closed"]


def test_an_environment_that_is_not_known_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    environment.put(JobEnvironment(attempt=None, environment=None))
    assert "has not told" in capsys.readouterr().err
