import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchyard.analysis import interpreters


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venvs") / "proj"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


def test_an_active_venv_is_given_as_its_prefix(venv: Path) -> None:
    found = interpreters.active_python({"VIRTUAL_ENV": str(venv), "PATH": f"{venv / 'bin'}:{os.defpath}"})
    assert found == interpreters.Python(path=str(venv), has_torch=False)


def test_a_venv_on_the_path_counts_without_its_variable(venv: Path) -> None:
    found = interpreters.active_python({"PATH": str(venv / "bin")})
    assert found is not None
    assert found.path == str(venv)


def test_the_conda_environment_on_the_path_beats_an_old_venv(venv: Path, tmp_path: Path) -> None:
    conda = tmp_path / "conda"
    (conda / "bin").mkdir(parents=True)
    (conda / "bin" / "python").symlink_to(sys.executable)
    environment = {"VIRTUAL_ENV": str(venv), "CONDA_PREFIX": str(conda), "PATH": str(conda / "bin")}
    found = interpreters.active_python(environment)
    assert found is not None
    assert found.path == str(conda)


def test_an_interpreter_outside_of_environments_is_given_itself() -> None:
    folder = Path(sys.base_prefix) / "bin"
    found = interpreters.active_python({"PATH": str(folder)})
    assert found is not None
    assert Path(found.path).name.startswith("python")


def test_no_python_is_no_error() -> None:
    assert interpreters.active_python({"PATH": "/nonexistent"}) is None


def test_only_a_python_that_is_missing_is_warned_of(venv: Path, tmp_path: Path) -> None:
    assert all(interpreters.absent(path) is None for path in (str(venv), sys.executable, "python3"))
    told = interpreters.absent(str(tmp_path))
    assert told is not None
    assert told.startswith(f"python: there is no {tmp_path}/bin/python on this machine: ")
