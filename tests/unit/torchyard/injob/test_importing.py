"""What is done once a module is imported, and that imports go on whatever that does."""

import importlib
import importlib.util
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from torchyard.injob import importing


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with a module `inner`, on the path; what watches imports goes with the test."""
    (tmp_path / "some_framework").mkdir()
    (tmp_path / "some_framework" / "__init__.py").touch()
    (tmp_path / "some_framework" / "inner.py").write_text("made = ['by itself']\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    yield "some_framework.inner"
    for name in ("some_framework", "some_framework.inner", "some_framework.backend"):
        sys.modules.pop(name, None)


def _add(module: ModuleType) -> None:
    module.made.append("by us")


def test_it_is_done_when_the_module_is_imported(package: str) -> None:
    importing.after({package: _add})
    assert package not in sys.modules
    assert importlib.import_module(package).made == ["by itself", "by us"]


def test_it_is_done_at_once_with_one_that_is(package: str) -> None:
    module = importlib.import_module(package)
    importing.after({package: _add})
    assert module.made == ["by itself", "by us"]


def test_a_failure_is_told_and_hinders_no_import(package: str, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(module: ModuleType) -> None:
        raise AttributeError(module.__name__ + " has changed")

    importing.after({package: fail})
    assert importlib.import_module(package).made == ["by itself"]
    assert "of some_framework.inner: AttributeError: some_framework.inner has changed" in capfd.readouterr().err


def test_looking_for_it_is_no_import(package: str) -> None:
    importing.after({package: _add, "absent_framework": _add})
    assert importlib.util.find_spec(package) is not None
    assert importlib.util.find_spec("absent_framework") is None
    assert package not in sys.modules


def test_a_module_that_must_not_be_imported_is_left_alone(
    package: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    importing.after({package: _add})
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(package)
    assert capfd.readouterr().err == ""


def test_a_forked_process_that_asks_again_has_it_done_once(package: str) -> None:
    seen: list[ModuleType] = []
    importing.after({package: lambda module: pytest.fail("of the process before")})
    importing.after({package: seen.append})
    assert not seen
    assert importlib.import_module(package) is seen[0]
    assert len(seen) == 1


def test_it_is_done_when_a_module_is_whole_whose_import_led_to_asking(package: str, tmp_path: Path) -> None:
    """As that of transformers or accelerate does, which import torch, where a script has not done so before."""
    (tmp_path / "some_framework" / "inner.py").write_text(
        "import sys\nfrom some_framework import backend\n"
        "sys.modules['some_framework'] = backend\nmade = ['by itself']\n"
    )
    (tmp_path / "some_framework" / "backend.py").touch()
    importing.after({"some_framework.backend": lambda module: importing.after({package: _add})})
    assert importlib.import_module(package).made == ["by itself", "by us"]


def test_an_import_that_fails_may_be_tried_again(package: str, tmp_path: Path) -> None:
    seen: list[ModuleType] = []
    inner = tmp_path / "some_framework" / "inner.py"
    inner.write_text("from some_framework import backend\nraise ImportError\n")
    (tmp_path / "some_framework" / "backend.py").touch()
    importing.after({"some_framework.backend": lambda module: importing.after({package: seen.append})})
    with pytest.raises(ImportError):
        importlib.import_module(package)
    assert not seen
    inner.write_text("made = 1\n")
    importlib.invalidate_caches()
    assert importlib.import_module(package) is seen[0]


def test_other_modules_of_a_zip_file_are_left_alone(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as file:
        for name in ("__init__", "inner", "backend"):
            file.writestr(f"some_framework/{name}.py", "made = []\n")
    monkeypatch.syspath_prepend(tmp_path / "zipped.zip")
    importing.after({package: _add})
    assert importlib.import_module(package).made == ["by us"]
    other = importlib.import_module("some_framework.backend")
    assert other.made == []
    assert other.__loader__ is sys.modules[package].__loader__
