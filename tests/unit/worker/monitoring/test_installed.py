"""What is installed for an interpreter, by the names of folders alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchyard import wire
from worker.monitoring import installed


def make(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).mkdir(parents=True)
    return folder


def venv(prefix: Path, config: str = "version = 3.11.9\n") -> Path:
    """A venv with two packages; returns its interpreter, which is not there."""
    make(prefix / "lib/python3.11/site-packages", "torch-2.13.0+cu126.dist-info", "torch", "ruamel.yaml-0.18.dist-info")
    (prefix / "pyvenv.cfg").write_text(config)
    return prefix / "bin/python"


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("torch-2.13.0+cu126.dist-info", ("torch", "2.13.0+cu126")),
        ("ruamel.yaml-0.18.6.dist-info", ("ruamel-yaml", "0.18.6")),
        ("Py_Package-1.0.post1.dist-info", ("py-package", "1.0.post1")),
        ("old-style-name-1.2-py3.11.egg-info", ("old-style-name", "1.2")),
        ("developed.egg-info", ("developed", "")),
        ("odd-1.0 beta.dist-info", ("odd", "")),
        ("~orch-2.1.dist-info", None),
        ("\x1b[2J-1.0.dist-info", None),
        (".dist-info", None),
    ],
)
def test_a_name_tells_package_and_version(folder: str, found: tuple[str, str] | None) -> None:
    assert installed.distribution(folder) == found


def test_a_venv_is_read(tmp_path: Path) -> None:
    found = installed.read(venv(tmp_path), None)
    assert (found.python, found.packages) == ("3.11.9", {"ruamel-yaml": "0.18", "torch": "2.13.0+cu126"})
    assert (found.left_out, found.error) == (0, None)


@pytest.mark.parametrize("sees", [True, False])
def test_a_venv_sees_the_systems_packages_behind_its_own_if_it_says_so(tmp_path: Path, sees: bool) -> None:
    make(tmp_path / "usr/lib/python3/dist-packages", "torch-1.0.dist-info", "numpy-2.0.egg-info")
    make(tmp_path / "ada/.local/lib/python3.11/site-packages", "numpy-2.1.dist-info")
    words = (
        f"version_info = 3.11.9.final.0\nhome = {tmp_path}/usr/bin\ninclude-system-site-packages = {str(sees).lower()}"
    )
    found = installed.read(venv(tmp_path / "venv", words), tmp_path / "ada")
    assert found.python == "3.11.9"
    assert found.packages == {"ruamel-yaml": "0.18", "torch": "2.13.0+cu126"} | ({"numpy": "2.1"} if sees else {})


def test_an_interpreter_of_the_system_is_followed_to_its_version(tmp_path: Path) -> None:
    make(tmp_path / "usr/lib/python3.12/site-packages", "numpy-2.0.dist-info")
    make(tmp_path / "usr/bin")
    (tmp_path / "usr/bin/python3.12").touch()
    (tmp_path / "usr/bin/python").symlink_to("python3.12")
    found = installed.read(tmp_path / "usr/bin/python", None)
    assert (found.python, found.packages) == ("3.12", {"numpy": "2.0"})


def test_conda_tells_pythons_version(tmp_path: Path) -> None:
    make(tmp_path / "lib/python3.11/site-packages", "numpy-2.0.dist-info")
    make(tmp_path / "conda-meta")
    (tmp_path / "conda-meta/python-dateutil-2.9-0.json").touch()
    (tmp_path / "conda-meta/python-3.11.4-h955ad1f_0.json").touch()
    found = installed.read(tmp_path / "bin/python", None)
    assert (found.python, found.packages) == ("3.11.4", {"numpy": "2.0"})


def test_nothing_is_invented_where_nothing_is_known(tmp_path: Path) -> None:
    found = installed.read(tmp_path / "bin/python", None)
    assert (found.python, found.packages) == (None, {})
    assert found.error == f"no folder of packages is known for {tmp_path}/bin/python"


def test_links_in_a_circle_are_no_interpreter(tmp_path: Path) -> None:
    make(tmp_path / "bin")
    (tmp_path / "bin/python").symlink_to("python")
    assert installed.read(tmp_path / "bin/python", None).packages == {}


def test_a_pipe_for_settings_does_not_hold_it_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyvenv.cfg")
    assert installed.read(tmp_path / "bin/python", None).packages == {}


def test_only_so_much_is_told() -> None:
    assert installed.MAX_PACKAGES == wire.MAX_PACKAGES
    many = {f"package-{number:05}": "1.0" for number in range(installed.MAX_PACKAGES + 5)}
    assert list(installed.bounded(many)) == sorted(many)[: installed.MAX_PACKAGES]
    long = {f"{number:05}-{'n' * 120}": "1" * 60 for number in range(2000)}
    kept = installed.bounded(long)
    assert 1000 < len(kept) < 2000
    assert len(json.dumps(kept)) < wire.MAX_ENVIRONMENT


def test_the_program_says_the_same_without_site_packages(tmp_path: Path) -> None:
    python = venv(tmp_path)
    command = [sys.executable, "-I", "-S", installed.__file__, str(python), ""]
    said = subprocess.run(command, check=True, capture_output=True, env={}, cwd="/").stdout
    assert installed.Installed(**json.loads(said)) == installed.read(python, None)
