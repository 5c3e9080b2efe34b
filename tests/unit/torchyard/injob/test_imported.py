"""Names of what a job has imported from site-packages."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from torchyard.injob import imported, layout, place

SITE = ("/env/lib/site-packages/",)


def module(name: str, file: str | None) -> ModuleType:
    made = ModuleType(name)
    if file is not None:
        made.__file__ = file
    return made


def modules(**files: str | None) -> dict[str, ModuleType]:
    """Modules by names with two underscores for each dot."""
    names = {name.replace("__", "."): file for name, file in files.items()}
    return {name: module(name, file) for name, file in names.items()}


def installed(loaded: dict[str, ModuleType]) -> list[str]:
    return imported.installed(loaded, SITE)


def test_only_what_lies_in_site_packages_in_order_of_import() -> None:
    loaded = modules(
        late="/env/lib/site-packages/late.py",
        early__deep="/env/lib/site-packages/early/deep.so",
        json="/usr/lib/python3/json/__init__.py",
        train="/home/ada/train.py",
        sys=None,
        near="/env/lib/site-packages-of-mine/near.py",
    )
    assert installed(loaded) == ["late", "early.deep"]


def test_nothing_of_a_package_that_is_partly_the_users() -> None:
    loaded = modules(shared__a="/env/lib/site-packages/shared/a.py", shared__b="/home/ada/shared/b.py")
    assert installed(loaded) == []


def test_not_what_is_loaded_anyway_or_has_another_name() -> None:
    loaded = modules(torch__nn="/env/lib/site-packages/torch/nn.py", numpy="/env/lib/site-packages/numpy.py")
    loaded["six.moves"] = module("six", "/env/lib/site-packages/six.py")
    loaded["a b"] = module("a b", "/env/lib/site-packages/a b.py")
    assert installed(loaded) == []


def test_a_lazy_module_is_not_asked() -> None:
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise RuntimeError("loaded")

    assert installed({"lazy": Lazy("lazy")}) == []


def test_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imported, "MAX_NAMES", 2)
    assert installed(modules(**{name: f"/env/lib/site-packages/{name}.py" for name in "abc"})) == ["a", "b"]


def test_rank_0_notes_its_modules_and_those_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / layout.MARKS).mkdir(parents=True)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "datasets.py").touch()
    (tmp_path / "code" / ".git").touch()
    attempt = place.CurrentAttempt(folder=str(tmp_path), checkpoint_every=None)
    monkeypatch.setattr(place, "current", lambda: attempt)
    monkeypatch.setattr(imported, "site_packages", lambda: SITE)
    found = SimpleNamespace(**vars(sys))
    found.modules = modules(tidy="/env/lib/site-packages/tidy.py")
    found.path = [str(tmp_path / "code")]
    monkeypatch.setattr(imported, "sys", found)
    mark = tmp_path / layout.MARKS / layout.imported_mark(0)
    monkeypatch.setenv("RANK", "1")
    imported.note()
    assert not mark.exists()
    monkeypatch.setenv("RANK", "0")
    imported.note()
    assert mark.read_text() == "tidy\nown datasets\n"
